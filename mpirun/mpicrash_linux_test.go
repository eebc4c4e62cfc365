package mpirun

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

// A crasher is a program of testdata/mpi whose rank 1 crashes.
type crasher struct{ gompirun, source, prog string }

// newCrasher compiles a program, by gcc and g++ for MPI 5's interface.
func newCrasher(t *testing.T, source string, compiler ...string) crasher {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		t.Skip("left out: frames are found on amd64")
	}
	if _, err := exec.LookPath(compiler[0]); err != nil {
		t.Skip("left out: no ", compiler[0])
	}
	gompirun, _ := withMPI(t)
	c := crasher{gompirun, filepath.Join("testdata/mpi", source), filepath.Join(t.TempDir(), "crash")}
	args := append(compiler[1:], "-o", c.prog, c.source)
	if compiler[0] == "gcc" || compiler[0] == "g++" {
		lib := filepath.Join(filepath.Dir(gompirun), "lib/abi")
		args = append(args, "-pthread", "-I", filepath.Join(lib, "include"), filepath.Join(lib, "libmpi_abi.so.1"))
	}
	if out, err := exec.Command(compiler[0], args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", compiler, err, out)
	}
	return c
}

// at returns a pattern of a frame in a function, at the line that ends with a comment.
func (c crasher) at(t *testing.T, function, comment string) string {
	t.Helper()
	text, err := os.ReadFile(c.source)
	if err != nil {
		t.Fatal(err)
	}
	place := regexp.MustCompile(`(?m)(/\*|//|!) ` + comment + `( \*/)?$`).FindIndex(text)
	if place == nil {
		t.Fatalf("%s has no comment %q", c.source, comment)
	}
	line := 1 + strings.Count(string(text[:place[0]]), "\n")
	return fmt.Sprintf(`  \| %s[.\w]*\(\) at mpi/%s:%d\n`, function, regexp.QuoteMeta(filepath.Base(c.source)), line)
}

// crashes runs the program until the report has a pattern: on a busy machine frames may come too
// late. The status is the same each time.
func (c crasher) crashes(t *testing.T, status int, want string, args ...string) {
	t.Helper()
	report := regexp.MustCompile(want)
	for end := time.Now().Add(soon); ; {
		got, _, errs := runCommand(t, "sh", append([]string{"-c", `ulimit -c 0; exec "$@"`, "sh", c.gompirun, "-np", "2",
			c.prog}, args...)...)
		if got == status && report.MatchString(errs) {
			return
		}
		if got != status || time.Now().After(end) {
			t.Errorf("%v: status %d, want %d and %q:\n%s", args, got, status, want, errs)
			return
		}
	}
}

// The report of a crash in C has its frames with lines, wherever it is: in the program's or
// another's code, in a thread, with a stack that has overflowed, called by Go or from nowhere. The
// signal, and handlers of the program, act as without gompirun.
func TestACrashInCHasItsFrames(t *testing.T) {
	for _, flags := range []string{"-O0", "-O2"} {
		c := newCrasher(t, "crash.c", "gcc", "-g", flags, "-fno-optimize-sibling-calls", "-w")
		at := func(function, comment string) string { return c.at(t, function, comment) }
		const begins = `(?m)^gompirun: rank 1 on localhost was killed by signal %s(, core dumped)? \(pid \d+\)\ngompirun: it crashed in\n`
		in := at("main", "main")
		for how, want := range map[string]string{
			"store":    "11 (SIGSEGV)" + at("store", "store") + at("crash", "called") + in,
			"divide":   "8 (SIGFPE)" + at("crash", "divide") + in,
			"null":     "11 (SIGSEGV)" + at("crash", "null") + in,
			"illegal":  "4 (SIGILL)" + at("crash", "illegal") + in,
			"abort":    `6 (SIGABRT)(  \| \S+ in libc.so.6\n)+` + at("crash", "abort") + in,
			"overflow": `11 (SIGSEGV)(  \| overflow\S* at .*\n)?` + at("overflow", "overflow"),
			"operator": "11 (SIGSEGV)" + at("store", "store") + at("reduce", "operator"),
			"thread":   "11 (SIGSEGV)" + at("store", "store") + at("thread", "thread"),
		} {
			signal, frames, _ := strings.Cut(want, ")")
			number := map[string]int{"11": 139, "8": 136, "4": 132, "6": 134}[strings.Fields(signal)[0]]
			c.crashes(t, number, fmt.Sprintf(begins, regexp.QuoteMeta(signal+")"))+frames, how)
		}
		if flags == "-O0" {
			c.crashes(t, 139, `SIGSEGV\).* \(pid \d+\)\ngompirun: (to see where|where it was|its core went)`, "sent")
			const exits = `(?m)^gompirun: rank 1 on localhost exited with status \d \(pid \d+\)\n(gompirun: then: .*\n)?\z`
			c.crashes(t, 7, exits, "own")
			c.crashes(t, 7, exits, "earlier")
			c.crashes(t, 9, exits, "child")
		}
	}
}

// An exception that nothing catches, and a crash in Fortran, whose own backtrace is whole.
func TestACrashInCXXAndFortranHasItsFrames(t *testing.T) {
	t.Run("C++", func(t *testing.T) {
		c := newCrasher(t, "crash.cc", "g++", "-g")
		c.crashes(t, 134, `(?m)^  \|   what\(\):  no data\ngompirun: it crashed in\n(  \| \S+ in lib(c|stdc\+\+)\.so\S*\n)+`+
			c.at(t, "_ZN3app5checkEi", "throw")+c.at(t, "main", "main"))
	})
	t.Run("Fortran", func(t *testing.T) {
		c := newCrasher(t, "crash.f90", "mpifort.openmpi", "-g")
		own := `(?ms)^(  \| )?#\d+ .* in middle\n(  \| )?\s*at \S*crash\.f90:\d+.*`
		c.crashes(t, 139, own+`^gompirun: it crashed in\n`+c.at(t, "middle", "read")+c.at(t, "MAIN__", "main"))
	})
}
