package job

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"testing"

	"gompi/comm"
	"gompi/comm/commtest"
)

func defaults() Flags {
	return Flags{Epochs: 5, Batch: 32, BatchPer: "rank", Rate: 0.1, Resume: "auto"}
}

func TestCommandLines(t *testing.T) {
	for args, want := range map[string]Flags{
		"":   {Epochs: 5, Batch: 32, BatchPer: "rank", Resume: "auto"},
		"50": {Epochs: 50, Batch: 32, BatchPer: "rank", Resume: "auto"},
		"50 10": {Epochs: 50, SaveEvery: 10, Batch: 32, BatchPer: "rank", Resume: "auto",
			Snapshot: "prog.snapshot"},
		"50 -batch 8 10": {Epochs: 50, SaveEvery: 10, Batch: 8, BatchPer: "rank", Resume: "auto",
			Snapshot: "prog.snapshot"},
		"-snapshot f 50 10": {Epochs: 50, SaveEvery: 10, Batch: 32, BatchPer: "rank", Resume: "auto",
			Snapshot: "f"},
		"--batch-per=node -eval": {Epochs: 5, Batch: 32, BatchPer: "node", Resume: "auto", Eval: true,
			Snapshot: "prog.snapshot"},
		"-eval -resume f": {Epochs: 5, Batch: 32, BatchPer: "rank", Resume: "f", Eval: true},
		"-keep-best -resume never": {Epochs: 5, Batch: 32, BatchPer: "rank", Resume: "never", KeepBest: true,
			Snapshot: "prog.snapshot"},
	} {
		f := defaults()
		want.Rate = 0.1
		if err := f.Parse("prog", "", strings.Fields(args), io.Discard, nil); err != nil || f != want {
			t.Errorf("%q gives %+v (%v), want %+v", args, f, err, want)
		}
	}
}

func TestArgumentsThatMakeNoSenseAreQuoted(t *testing.T) {
	for args, want := range map[string]string{
		"-nosuch":             "-nosuch",
		"fifty":               `"fifty": want a number`,
		"1 2 3":               `"3": want at most two`,
		"0":                   "-epochs 0: want at least 1",
		"-batch 0":            "-batch 0",
		"5 -1":                "-1",
		"-lr NaN":             "-lr NaN",
		"-lr Inf":             "-lr +Inf: want a positive, finite number",
		"-batch-per host":     `-batch-per "host": want rank, node or all`,
		"-resume=":            "-resume",
		"-eval -resume never": "-eval with -resume never",
		"-print-every -1":     "-print-every -1",
	} {
		f := defaults()
		if err := f.Parse("prog", "", strings.Fields(args), io.Discard, nil); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %s", args, err, want)
		}
	}
}

func TestHelpNamesEveryFlag(t *testing.T) {
	var help bytes.Buffer
	f := defaults()
	err := f.Parse("prog", "It does.", []string{"-h"}, &help,
		func(fs *flag.FlagSet) { fs.Bool("own", false, "of the program") })
	if !errors.Is(err, flag.ErrHelp) {
		t.Errorf("error is %v", err)
	}
	for _, want := range []string{"usage: prog [flags] [EPOCHS [SAVE-EVERY]]\n\nIt does.\n", "-epochs", "-batch-per",
		"-keep-best", "-own"} {
		if !strings.Contains(help.String(), want) {
			t.Errorf("help lacks %s:\n%s", want, help.String())
		}
	}
}

func TestBatchesArePerRankNodeOrAll(t *testing.T) {
	for per, want := range map[string]int{"rank": 30, "node": 10, "all": 10} {
		commtest.Run(t, 3, func(ctx context.Context, c *comm.Comm) error {
			f := Flags{Batch: 10, BatchPer: per}
			if got, err := f.batchOfAll(ctx, c); err != nil || got != want {
				return fmt.Errorf("-batch 10 per %s of 3 ranks on a node is %d (%v), want %d", per, got, err, want)
			}
			return nil
		})
	}
}
