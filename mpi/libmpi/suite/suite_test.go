package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestLinesOfLists(t *testing.T) {
	l, err := parseLine("coll", "allred  7 arg=-count=10 arg=-x env=A=b=c timeLimit=30 mem=1.5 xfail=ticket1 resultTest=TestErrFatal")
	if err != nil {
		t.Fatal(err)
	}
	if l.program != "allred" || l.ranks != 7 || !slices.Equal(l.args, []string{"-count=10", "-x"}) ||
		!slices.Equal(l.env, []string{"A=b=c"}) ||
		l.limit != 30*time.Second || l.memory != 1.5 || !l.status || l.text[:9] != "allred 7 " {
		t.Errorf("got %+v", l)
	}
	for _, bad := range []string{"allred many", "allred 2 timeLimit=soon", "allred 2 mem=all"} {
		if _, err := parseLine("coll", bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestVerdicts(t *testing.T) {
	ended := func(status string) error { return exec.Command("sh", "-c", "exit "+status).Run() }
	for _, c := range []struct {
		out, text string
		status    string
		wants     bool // another status than 0
		verdict   verdict
		first     string
	}{
		{" No Errors\n", "a warning", "0", false, passed, ""},
		{"No Errors\nNo errors\n", "", "0", false, passed, ""},
		{" No Errors\n", "gompirun: rank 0 failed", "1", false, failed, "gompirun: rank 0 failed"},
		{" Found 3 errors\n", "why", "0", false, failed, "Found 3 errors"},
		{"wrong\n No Errors\n", "", "0", false, failed, "wrong"},
		{"", "", "0", false, failed, `status 0, no "No Errors"`},
		{"", "gompirun: the time is over", "124", false, timedOut, "gompirun: the time is over"},
		{"", "", "124", true, passed, ""},
		{"some output", "", "3", true, passed, ""},
		{" No Errors\n", "", "0", true, failed, "it ended with 0"},
	} {
		r := run{line: line{status: c.wants}}
		if v, first := judge(r, c.out, c.text, ended(c.status)); v != c.verdict || first != c.first {
			t.Errorf("%q, %q and status %s are %s, %q: want %s, %q", c.out, c.text, c.status, v, first,
				c.verdict, c.first)
		}
	}
}

func TestKnownLines(t *testing.T) {
	known, err := parseKnown("# all\n\nall attr/a 1: needs windows\nmpich coll/b 2 arg=x: y: z\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ face, line, want string }{
		{"openmpi", "attr/a 1", "needs windows"}, {"mpich", "attr/a 1", "needs windows"},
		{"mpich", "coll/b 2 arg=x", "y: z"}, {"openmpi", "coll/b 2 arg=x", ""}, {"mpich", "coll/b 2", ""},
	} {
		dir, text, _ := strings.Cut(c.line, "/")
		if got := known.why(run{c.face, line{dir: dir, text: text}}); got != c.want {
			t.Errorf("why %s %s: got %q, want %q", c.face, c.line, got, c.want)
		}
	}
	for _, bad := range []string{"attr/a 1: why", "all attr/a 1", "all attr/a 1: "} {
		if _, err := parseKnown(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestCrossSection(t *testing.T) {
	known, err := parseKnown("all a/3: why\nmpich a/4: why\nonce a/6: it hung\nchance f90/a/0: a race\n")
	if err != nil {
		t.Fatal(err)
	}
	var all []run
	for _, face := range []string{"openmpi", "mpich"} {
		for _, text := range strings.Fields("0 1 2 3 4 5 6 7 8") {
			l := line{dir: "a", text: text}
			if text == "1" {
				l.memory = 4
			}
			all = append(all, run{face, l})
		}
		for _, text := range strings.Fields("0 1 2 3") {
			all = append(all, run{face, line{dir: "f90/a", text: text}})
		}
	}
	var got []string
	for _, r := range crossSection(all, 3, known) {
		got = append(got, r.key())
	}
	if want := strings.Fields("openmpi/a/0 openmpi/a/5 openmpi/a/6 openmpi/a/8 openmpi/f90/a/1 mpich/a/5 mpich/a/6 mpich/a/8"); !slices.Equal(got, want) {
		t.Errorf("every third line: got %q, want %q", got, want)
	}
}

// f90/io has no template of its own: it is made of that for Fortran 77.
func TestTemplatesInFreeForm(t *testing.T) {
	got := freeForm("C\nC comment\n      program main\n      implicit none\n      include 'mpif.h'\n      include 'iooffset.h'\n      <fheader/>\n<TESTDEFN filename=\"iwriteatf.f\">\n      Call x\n")
	want := "!\n! comment\n      program main\n\n      use mpi\n      integer (kind=MPI_OFFSET_KIND) offset\n      <f90header/>\n<TESTDEFN filename=\"iwriteatf90.f90\">\n      Call x\n"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
