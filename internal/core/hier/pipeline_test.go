package hier

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"gompi/internal/core/coll"
	"gompi/internal/mem"
)

// waitless is Peers of which nothing but Wait is called, which it records.
type waitless struct {
	coll.Peers
	log *[]string
}

func (w waitless) Wait() error { *w.log = append(*w.log, "wait"); return nil }

// recorded returns a pipeline of three chunks of two elements each. Between hosts a chunk takes as
// many waits as waits says. What is done goes to log.
func recorded(log *[]string, waits int) *pipeline {
	record := func(what string) stage {
		return func(_ *pipeline, p part) error {
			*log = append(*log, fmt.Sprintf("%s %d", what, p.number))
			return nil
		}
	}
	v := &pipeline{Subset: &coll.Subset{Peers: waitless{log: log}}, exchanges: true, chunk: 2, chunks: 3,
		send: mem.Of(make([]byte, 5))}
	start := record("start")
	v.stages = stages{in: record("in"), out: record("out"), between: func(v *pipeline, p part) error {
		err := start(v, p)
		for range waits {
			err = errors.Join(err, v.Wait())
		}
		return err
	}}
	return v
}

// While a chunk is between hosts, the next is combined inside the host and the one before handed
// out: before the first message of the chunk is waited for, and only once.
func TestNeighbouringChunksAreWorkedOnWhileOneIsBetweenHosts(t *testing.T) {
	for _, test := range []struct {
		name      string
		exchanges bool
		waits     int
		want      string
	}{
		{"with one wait", true, 1, "in 0, start 0, in 1, wait, start 1, in 2, out 0, wait, start 2, out 1, wait, out 2"},
		{"with two", true, 2, "in 0, start 0, in 1, wait, wait, start 1, in 2, out 0, wait, wait, start 2, out 1, wait, wait, out 2"},
		{"with none", true, 0, "in 0, start 0, in 1, start 1, in 2, out 0, start 2, out 1, out 2"},
		{"on a member that stays", false, 1, "in 0, in 1, in 2, out 0, out 1, out 2"},
	} {
		var log []string
		v := recorded(&log, test.waits)
		v.exchanges = test.exchanges
		if err := v.run(); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(log, ", "); got != test.want {
			t.Errorf("%s: %s\nwant %s", test.name, got, test.want)
		}
	}
}

// Along a chain of hosts a chunk is between them for two steps.
func TestAChunkOfAChainIsHandedOutWhenItHasBeenSentOn(t *testing.T) {
	for _, test := range []struct {
		name      string
		exchanges bool
		want      string
	}{
		{"a leader", true, "in 0, step 0, in 1, wait, step 1, in 2, wait, step 2, out 0, wait, step 3, out 1, wait, out 2"},
		{"a member that stays", false, "in 0, in 1, in 2, out 0, out 1, out 2"},
	} {
		var log []string
		v := recorded(&log, 1)
		v.exchanges, v.late = test.exchanges, 1
		v.step = func(v *pipeline) error {
			log = append(log, fmt.Sprintf("step %d", v.current))
			return v.Wait()
		}
		if err := v.run(); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(log, ", "); got != test.want {
			t.Errorf("%s: %s\nwant %s", test.name, got, test.want)
		}
	}
}

func TestWorkThatFailsDuringAWaitFailsIt(t *testing.T) {
	var log []string
	v, failed := recorded(&log, 1), errors.New("failed")
	v.stages.out = func(*pipeline, part) error { return failed }
	if err := v.run(); !errors.Is(err, failed) {
		t.Errorf("got %v, want %v", err, failed)
	}
	if got, want := strings.Join(log, ", "), "in 0, start 0, in 1, wait, start 1, in 2, wait"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}
