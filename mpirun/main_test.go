package mpirun

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"gompi/internal/boot"
	"gompi/internal/calls"
	"gompi/internal/mem"
	"gompi/internal/seg"
)

func TestMain(m *testing.M) {
	// A process built for the race detector otherwise sleeps for a second when
	// it exits, and there are hundreds here.
	os.Setenv("GORACE", "atexit_sleep_ms=0")
	testscript.Main(suite{m}, map[string]func(){
		"gompirun": func() { os.Exit(Main(os.Args[1:])) },
		"rank":     rankMain,
		"loop":     loopMain,
		"stall":    stallMain,
		"pmi":      pmiMain,
		"alone":    aloneMain,
		"deny":     denyMain,
		"adopt":    adoptMain,
		"world":    worldMain,
		"struck":   struckMain,
		"survive":  surviveMain,
		"hoard":    hoardMain,
		"parting":  partingMain,
		"marked":   markedMain,
		"released": releasedMain,
		"scale":    scaleMain,
		"slowed":   slowedMain,
	})
}

// A suite is all tests, started by whomever: programs that they start would ignore
// the signals that this process has been told to ignore (by nohup, or by a script's shell
// that has put it into the background).
type suite struct{ *testing.M }

func (s suite) Run() int {
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
	os.Setenv("XDG_STATE_HOME", "/dev/null") // jobs of tests are no history of the user's
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "test.parallel" })
	if !asked { // most of them wait, so that more than there are processors may run at once
		flag.Set("test.parallel", "8")
	}
	defer os.RemoveAll(mpiScratch)
	return s.M.Run()
}

// began are the variables that a rank began with.
var began []string

// rankMain is a program that knows internal/boot and nothing above it. Its
// arguments are done in turn.
func rankMain() {
	began = os.Environ()
	b, err := boot.Open(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	for _, what := range os.Args[1:] {
		if err := act(b, what); err != nil {
			fmt.Fprintf(os.Stderr, "rank %d: %v\n", b.Info().Rank, err)
			os.Exit(4)
		}
	}
}

func act(b boot.Boot, what string) error {
	in := b.Info()
	// "2:kill" is for rank 2 alone.
	if rank, rest, ok := strings.Cut(what, ":"); ok {
		if rank != fmt.Sprint(in.Rank) {
			return nil
		}
		what = rest
	}
	switch what {
	case "meet":
		cards, err := b.Allgather(context.Background(), fmt.Appendf(nil, "%d", in.Rank*in.Rank))
		if err != nil {
			return err
		}
		fmt.Printf("rank %d of %d, local %d of %d, node %d of %d on %s, cards %s\n",
			in.Rank, in.Size, in.LocalRank, in.LocalSize, in.Node, in.Nodes, in.Host(in.Rank), cards)
	case "say":
		fmt.Println("ready")
	case "goodbye":
		return b.Goodbye(false)
	case "unblock": // standard input's description, which other processes share
		return syscall.SetNonblock(0, true)
	case "abort":
		return b.Abort(13, "no disk")
	case "revoke":
		return b.Revoke(77, []byte("mismatch"))
	case "news":
		var events []boot.Event
		for len(events) == 0 {
			if b.Pending() { // perhaps in vain
				events = b.Events()
			}
		}
		for _, e := range events {
			fmt.Printf("rank %d hears %d %d %d %s\n", in.Rank, e.Kind, e.Rank, e.Comm, e.Text)
		}
	case "kill":
		p, err := os.FindProcess(os.Getpid())
		if err != nil {
			return err
		}
		return p.Kill()
	case "stuck":
		t := in.Flight().BeginCall(&seg.Call{Kind: calls.Allreduce, Type: mem.F32, Op: mem.Sum, Peer: -1, Count: 1024})
		in.Flight().Stamp(t, seg.Now())
		time.Sleep(time.Hour) // not select{}: Go would call that a deadlock
	case "wait":
		time.Sleep(time.Hour) // not select{}: Go would call that a deadlock
	case "child", "early child": // which must not be taken for this rank
		cmd := exec.Command("rank", "meet", "goodbye")
		if what == "early child" {
			cmd.Env = began
		}
		out, err := cmd.CombinedOutput()
		fmt.Printf("%s", out)
		return err
	case "environment": // of a child, and its descriptors
		out, err := exec.Command("sh", "-c", "env; ls -l /proc/self/fd").CombinedOutput()
		fmt.Printf("%s", out)
		return err
	default:
		return fmt.Errorf("unknown action %q", what)
	}
	return nil
}

// started starts cmd and returns its standard output.
func started(t *testing.T, cmd *exec.Cmd) *bufio.Reader {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return bufio.NewReader(out)
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits": exits, "cmpsorted": cmpSorted,
		},
		Setup: func(e *testscript.Env) error {
			e.Setenv("GORACE", os.Getenv("GORACE"))
			return nil
		},
	})
}

// exits runs a command and checks its exit status: exits 7 gompirun ...
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v: %v", args[1:], err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("%v exited with status %d, want %d", args[1:], got, want)
	}
}

// cmpSorted compares the lines of two files, in any order.
func cmpSorted(ts *testscript.TestScript, _ bool, args []string) {
	sorted := func(file string) string {
		lines := strings.Split(ts.ReadFile(file), "\n")
		slices.Sort(lines)
		return strings.TrimSpace(strings.Join(lines, "\n"))
	}
	if got, want := sorted(args[0]), sorted(args[1]); got != want {
		ts.Fatalf("%s:\n%s\nwant, as %s:\n%s", args[0], got, args[1], want)
	}
}
