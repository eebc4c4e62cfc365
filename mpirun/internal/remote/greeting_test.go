package remote

import (
	"bytes"
	"io"
	"os/exec"
	"strings"
	"testing"

	"gompi/mpirun/internal/ctl"
)

func TestWhatALoginPrintsFirstDoesNoHarm(t *testing.T) {
	for _, before := range []string{"", "Welcome.\n", "no newline", "\x00", "\x00gompi", "\x00go\x00gompi\n",
		strings.Repeat("x", maxGreeting-100)} {
		r := strings.NewReader(before + ctl.Magic + "rest")
		got, err := readGreeting(r)
		rest, _ := io.ReadAll(r)
		if got != ctl.Magic || err != nil || string(rest) != "rest" {
			t.Errorf("after %.20q: %q, %v, and then %q; want the magic, and then the rest", before, got, err, rest)
		}
	}
	if got, err := readGreeting(strings.NewReader(strings.Repeat("y\n", maxGreeting))); err == nil ||
		!strings.Contains(err.Error(), `"y\ny`) {
		t.Errorf("of what is no agent: %q, %v; want an error that quotes it", got, err)
	}
}

func FuzzGreeting(f *testing.F) {
	f.Add([]byte("Welcome\n" + ctl.Magic))
	f.Add([]byte(lineMachine + "vax\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := readGreeting(bytes.NewReader(data))
		if err == nil && (!strings.HasPrefix(got, "\x00gompi ") || !strings.HasSuffix(got, "\n") ||
			!bytes.Contains(data, []byte(got))) {
			t.Errorf("%q: %q", data, got)
		}
	})
}

// The command line becomes the gompirun at the path, with the build that is
// wanted, whatever the path looks like.
func TestTheBootstrapRunsTheProgramAtThePath(t *testing.T) {
	me, err := newSelf()
	if err != nil {
		t.Fatal(err)
	}
	me.path = t.TempDir() + `/it's "$HOME" \ gompirun`
	if out, err := exec.Command("sh", "-c", `printf '#!/bin/sh\necho "$@"\n' >"$0" && chmod 755 "$0"`,
		me.path).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err := exec.Command("sh", "-c", me.command("", false)).CombinedOutput()
	if want := AgentFlag + " " + me.build + "\n"; err != nil || string(out) != want {
		t.Errorf("%q, %v; want %q", out, err, want)
	}
	if strings.ContainsAny(bootstrap, "'!\n") || strings.Contains(bootstrap, `\\`) {
		t.Errorf("%q: want no quote, exclamation mark, newline or two backslashes, which some shells do not take", bootstrap)
	}
	me.machine = "vax"
	out, err = exec.Command("sh", "-c", me.command("", false)).CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), lineMachine) {
		t.Errorf("on another machine: %q, %v; want %q", out, err, lineMachine)
	}
}
