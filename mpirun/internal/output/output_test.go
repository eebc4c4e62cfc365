package output

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/plan"
)

// A printed is output of a rank, or of gompirun itself if the rank is -1.
type printed struct {
	rank   int
	stream ctl.Stream
	data   string
}

// write passes all through a Writer and returns the output on stdout and stderr, which are one
// file if shared.
func write(t *testing.T, shared bool, set func(*Writer), all []printed) (stdout, stderr string) {
	t.Helper()
	dir := t.TempDir()
	open := func(name string) *os.File {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	out := open("out")
	errs := out
	if !shared {
		errs = open("err")
	}
	o := New(out, errs)
	set(o)
	var credit atomic.Int64
	for _, s := range all {
		if s.rank < 0 {
			o.Log(s.data)
			continue
		}
		o.Write(&ctl.Output{Rank: s.rank, Stream: s.stream, Data: []byte(s.data)}, func(n int) { credit.Add(int64(n)) })
		credit.Add(-int64(ctl.Cost(len(s.data))))
	}
	<-o.Flush()
	o.Close()
	if n := credit.Load(); n != 0 {
		t.Errorf("credit is off by %d", n)
	}
	return contents(t, out), contents(t, errs)
}

func contents(t *testing.T, f *os.File) string {
	t.Helper()
	b, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestLinesAreNeverMixed(t *testing.T) {
	const o, e = ctl.Stdout, ctl.Stderr
	tests := []struct {
		name   string
		tag    bool
		shared bool
		in     []printed
		out    string
		err    string
	}{
		{"plain", false, false, []printed{{0, o, "a\nb\n"}, {1, e, "c\n"}, {1, o, "d\n"}}, "a\nb\nd\n", "c\n"},
		{"tags", true, false, []printed{{0, o, "a\nb\n"}, {12, e, "c\n"}}, "[0]<stdout>:a\n[0]<stdout>:b\n",
			"[12]<stderr>:c\n"},
		{"continued", true, false, []printed{{0, o, "name? "}, {0, o, "yes\nx"}, {0, o, "y\n"}},
			"[0]<stdout>:name? yes\n[0]<stdout>:xy\n", ""},
		{"interrupted", true, false, []printed{{0, o, "a"}, {1, o, "b\n"}, {0, o, "c\n"}},
			"[0]<stdout>:a\n[1]<stdout>:b\n[0]<stdout>:c\n", ""},
		{"interrupted without tags", false, false, []printed{{0, o, "a"}, {1, o, "b\n"}}, "a\nb\n", ""},
		{"two streams do not interrupt each other", false, false, []printed{{0, o, "a"}, {1, e, "b\n"}, {0, o, "c\n"}},
			"ac\n", "b\n"},
		{"unless they are one", false, true, []printed{{0, o, "a"}, {0, e, "b\n"}, {0, o, "c"}}, "a\nb\nc", "a\nb\nc"},
		{"no end", false, false, []printed{{0, o, "end"}}, "end", ""},
		{"own words", false, true, []printed{{0, o, "a"}, {-1, 0, "gompirun: x"}, {0, o, "b\n"}}, "a\ngompirun: x\nb\n",
			"a\ngompirun: x\nb\n"},
		{"nothing", true, false, []printed{{0, o, ""}}, "", ""},
	}
	for _, tt := range tests {
		out, errs := write(t, tt.shared, func(o *Writer) { o.Tag = tt.tag }, tt.in)
		if out != tt.out || errs != tt.err {
			t.Errorf("%s: stdout %q, stderr %q; want %q, %q", tt.name, out, errs, tt.out, tt.err)
		}
	}
}

func TestACopyOfTheScreensHasTheColoursOfRanksAlone(t *testing.T) {
	var copied strings.Builder
	_, errs := write(t, true, func(o *Writer) { o.Colour, o.Copy = true, &copied },
		[]printed{{0, ctl.Stdout, bold + "a"}, {-1, 0, "gompirun: x"}})
	if errs != bold+"a\n"+bold+"gompirun:"+plain+" x\n" || copied.String() != bold+"a\ngompirun: x\n" {
		t.Errorf("%q, copied as %q", errs, copied.String())
	}
}

func TestTimestampStandsBeforeTheTag(t *testing.T) {
	out, _ := write(t, false, func(o *Writer) {
		o.Tag, o.Stamp = true, true
		o.now = func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 67_000_000, time.UTC) }
	}, []printed{{3, ctl.Stdout, "x\n"}})
	if want := "2026-01-02T03:04:05.067 [3]<stdout>:x\n"; out != want {
		t.Errorf("%q, want %q", out, want)
	}
}

// keep has o keep the output of so many ranks in files in dir.
func keep(t *testing.T, o *Writer, dir string, ranks int) {
	t.Helper()
	o.Files.Dir, o.Ranks = dir, make([]plan.Label, ranks)
	if err := o.MakeFolders(); err != nil {
		t.Fatal(err)
	}
}

func TestFilesHoldWhatRanksWroteAsItIs(t *testing.T) {
	dir := t.TempDir()
	write(t, false, func(o *Writer) { o.Tag = true; keep(t, o, dir, 11) },
		[]printed{{7, ctl.Stdout, "a"}, {8, ctl.Stdout, "b\n"}, {7, ctl.Stdout, "c\n"}, {7, ctl.Stderr, "d"}})
	for name, want := range map[string]string{"rank.07/stdout": "ac\n", "rank.08/stdout": "b\n",
		"rank.07/stderr": "d"} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v; want %q", name, got, err, want)
		}
	}
}

func TestAFileThatCannotBeWrittenIsReportedOnce(t *testing.T) {
	reports := 0
	out, _ := write(t, false, func(o *Writer) {
		o.Files.Dir, o.Fail = "/nonexistent", func(error) { reports++ }
	}, []printed{{0, ctl.Stdout, "a\n"}, {0, ctl.Stdout, "b\n"}})
	if reports != 1 || out != "a\nb\n" {
		t.Errorf("%d reports, output %q; want 1, and all of it", reports, out)
	}
}

// Unread output is dropped when its screen is given up: its credit comes back, the ranks' files
// are whole, and the other screen is still written.
func TestOutputWithoutAReaderIsGivenUp(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	dir := t.TempDir()
	errs, err := os.Create(filepath.Join(dir, "err"))
	if err != nil {
		t.Fatal(err)
	}
	defer errs.Close()
	o := New(w, errs)
	keep(t, o, dir, 1)
	line := bytes.Repeat([]byte("x"), 1<<20)
	credit := make(chan int, 3)
	for range cap(credit) {
		o.Write(&ctl.Output{Stream: ctl.Stdout, Data: line}, func(n int) { credit <- n })
	}
	giveUp(o, o.screens[ctl.Stdout])
	for range cap(credit) {
		if n := <-credit; n != ctl.Cost(len(line)) {
			t.Errorf("credit of %d, want %d", n, ctl.Cost(len(line)))
		}
	}
	o.Log("last words")
	<-o.Flush()
	o.Close()
	if got := contents(t, errs); got != "last words\n" {
		t.Errorf("stderr holds %q", got)
	}
	kept, err := os.ReadFile(filepath.Join(dir, "rank.0/stdout"))
	lost, _ := o.Lost()
	if all := int64(len(kept)); err != nil || all != 3<<20 || lost < all-2*pipeSize || lost > all {
		t.Errorf("%v, %d bytes in the file and %d lost; want 3 MiB, and all but what the pipe holds", err, all, lost)
	}
}

// giveUp gives up blocked sinks, and waits until all other output is written.
func giveUp(o *Writer, blocked ...*sink) {
	for flushed := o.Flush(); ; { // a blocked sink may not have begun
		for _, s := range blocked {
			s.giveUp(10)
		}
		select {
		case <-flushed:
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// A reader is given up when it has been seen to take nothing for long enough in a row.
func TestAReaderThatIsSlowIsNotGivenUp(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	o := New(w, w)
	defer o.Close()
	o.Write(&ctl.Output{Stream: ctl.Stdout, Data: bytes.Repeat([]byte("x"), pipeSize+2*chunk)}, func(int) {})
	s := o.screens[ctl.Stdout]
	blocked := func(left int) {
		t.Helper()
		for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) { // nothing tells
			s.mu.Lock()
			is := s.busy && s.left == left
			s.mu.Unlock()
			if is {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("no write is blocked with %d bytes left", left)
			}
		}
	}
	blocked(2 * chunk)
	s.giveUp(3)
	s.giveUp(3)
	if _, err := io.ReadFull(r, make([]byte, chunk)); err != nil {
		t.Fatal(err)
	}
	blocked(chunk)
	s.giveUp(3)
	s.giveUp(3)
	if s.dropped() != 0 {
		t.Error("it is given up though it has read something")
	}
	s.giveUp(3)
	if n := s.dropped(); n != chunk {
		t.Errorf("%d bytes are dropped, want %d: it has been seen three times to read nothing", n, chunk)
	}
}

// A file that takes nothing is given up, be it that no process opens it or that none
// reads it; the screen and other files are still written.
func TestFilesWithoutAReaderAreGivenUp(t *testing.T) {
	dir := t.TempDir()
	paths := make([]string, 3)
	for r := range paths {
		paths[r] = filepath.Join(dir, fmt.Sprintf("rank.%d/stdout", r))
	}
	for _, path := range paths[:2] {
		if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	unread, err := os.OpenFile(paths[1], os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unread.Close()
	screen, err := os.Create(filepath.Join(dir, "screen"))
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	o := New(screen, screen)
	keep(t, o, dir, 3)
	line := bytes.Repeat([]byte("x"), 1<<18)
	credit := 0
	back := make(chan int, 3)
	for r := range 3 {
		o.Write(&ctl.Output{Rank: r, Stream: ctl.Stdout, Data: line}, func(n int) { back <- n })
	}
	giveUp(o, o.files[paths[0]], o.files[paths[1]])
	o.Close()
	for range 3 {
		credit += <-back
	}
	if credit != 3*ctl.Cost(len(line)) {
		t.Errorf("credit of %d, want %d", credit, 3*ctl.Cost(len(line)))
	}
	if n := len(contents(t, screen)); n != 3*len(line)+2 { // each rank's line is ended by the next one's
		t.Errorf("%d bytes on the screen, want all", n)
	}
	if kept, err := os.ReadFile(paths[2]); err != nil || len(kept) != len(line) {
		t.Errorf("%d bytes in the file, %v; want all", len(kept), err)
	}
	lost, files := o.Lost()
	if lost < int64(2*len(line)-2*pipeSize) || lost > int64(2*len(line)) || !slices.Equal(files, paths[:2]) ||
		o.Err() != nil {
		t.Errorf("%d bytes of %q are lost, %v; want all but what a pipe holds of the first two", lost, files, o.Err())
	}
}

// Output of a Writer that has been given up does not get into the next one's, when the job starts
// again.
func TestOneWriterWritesAtATime(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	o := New(w, w)
	o.Write(&ctl.Output{Stream: ctl.Stdout, Data: bytes.Repeat([]byte("x"), 1<<20)}, func(int) {})
	giveUp(o, o.screens[ctl.Stdout])
	next := New(w, w)
	o.Close()
	const count = 4000
	for range count {
		next.Write(&ctl.Output{Stream: ctl.Stdout, Data: []byte("second\n")}, func(int) {})
	}
	go func() {
		<-next.Flush()
		next.Close()
		w.Close()
	}()
	all, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := bytes.Cut(all, []byte("second"))
	rest := bytes.ReplaceAll(all[len(first):], []byte("second\n"), nil)
	if len(bytes.Trim(first, "x")) > 0 || len(rest) > 0 || len(all)-len(first) != count*len("second\n") {
		t.Errorf("the first Writer's %d bytes are followed by %d, with %d that are not the second one's", len(first),
			len(all)-len(first), len(rest))
	}
}

// pipeSize is the capacity of a pipe, with pages of the usual size.
const pipeSize = 64 << 10

func TestAScreenThatCannotBeWrittenIsReportedOnce(t *testing.T) {
	null, err := os.Open(os.DevNull) // for reading
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	o := New(null, os.Stderr)
	reports := 0
	o.Fail = func(error) { reports++ }
	for range 3 {
		o.Write(&ctl.Output{Stream: ctl.Stdout, Data: []byte("x\n")}, func(int) {})
	}
	<-o.Flush()
	o.Close()
	if reports != 1 || !errors.Is(o.Err(), syscall.EBADF) {
		t.Errorf("%d reports, error %v; want 1, and that of the descriptor", reports, o.Err())
	}
}

func TestPatternsNameFilesAndBeginLines(t *testing.T) {
	dir := t.TempDir()
	set := func(o *Writer) {
		o.Prefix = "%r of %h, %p %g %t%%: "
		o.now = func() time.Time { return time.Unix(12, 0) }
		o.Ranks = []plan.Label{{Rank: 0, Host: "a"}, {Rank: 1, Host: "b", Node: 1}, {Rank: 2, Host: "b", Node: 1}}
		o.Files.Patterns = map[ctl.Stream]string{ctl.Stderr: filepath.Join(dir, "%h.%t")}
	}
	out, errs := write(t, false, set, []printed{
		{0, ctl.Stdout, "x\ny\n"}, {1, ctl.Stderr, "from 1\n"}, {2, ctl.Stderr, "from 2\n"}, {-1, 0, "gompirun: own"},
		{2, ctl.Stdout, "z\n"},
	})
	if want := "0 of a, 0 0 12%: x\n0 of a, 0 0 12%: y\n2 of b, 1 0 12%: z\n"; out != want ||
		errs != "gompirun: own\n" {
		t.Errorf("stdout %q, stderr %q; want %q, and gompirun's words", out, errs, want)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "b.12")); err != nil || string(got) != "from 1\nfrom 2\n" {
		t.Errorf("the file of two ranks holds %q, %v", got, err)
	}
}

func TestOutputOfSomeLocalRanksIsShown(t *testing.T) {
	dir := t.TempDir()
	set := func(o *Writer) {
		o.Ranks, o.Shown, o.Prefix = []plan.Label{{Rank: 0}, {Rank: 1, Local: 1}, {Rank: 2}, {Rank: 3, Local: 1}},
			[]int{1, 5}, "%l of %r: "
		o.Files.Patterns = map[ctl.Stream]string{ctl.Stderr: filepath.Join(dir, "%r")}
	}
	out, errs := write(t, false, set, []printed{
		{0, ctl.Stdout, "x\n"}, {1, ctl.Stdout, "y\n"}, {2, ctl.Stdout, "z\n"}, {3, ctl.Stdout, "z\n"},
		{0, ctl.Stderr, "why\n"}, {-1, 0, "gompirun: own"},
	})
	if want := "1 of 1: y\n1 of 3: z\n"; out != want || errs != "gompirun: own\n" {
		t.Errorf("stdout %q, stderr %q; want %q, and gompirun's words", out, errs, want)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "0")); err != nil || string(got) != "why\n" {
		t.Errorf("the file of a rank that is not shown holds %q, %v", got, err)
	}
}

func TestFilesCanBeAllThatIsWritten(t *testing.T) {
	dir := t.TempDir()
	out, errs := write(t, false, func(o *Writer) { keep(t, o, dir, 1); o.Files.Only = true },
		[]printed{{0, ctl.Stdout, "x\n"}, {0, ctl.Stderr, "y\n"}})
	got, err := os.ReadFile(filepath.Join(dir, "rank.0/stdout"))
	if out != "" || errs != "" || err != nil || string(got) != "x\n" {
		t.Errorf("stdout %q, stderr %q, the file %q, %v; want the file alone", out, errs, got, err)
	}
}

// The report of a failure leaves out the end of the screen.
func TestTheEndOfTheScreenIsKnown(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) *os.File {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	o := New(file("out"), file("err"))
	defer o.Close()
	write := func(rank int, stream ctl.Stream, text string) {
		o.Write(&ctl.Output{Rank: rank, Stream: stream, Data: []byte(text)}, func(int) {})
	}
	ends := func(rank int, text string, want bool) {
		t.Helper()
		if got := o.EndsWith(rank, []byte(text)); got != want {
			t.Errorf("ends with %q of rank %d: %v, want %v", text, rank, got, want)
		}
	}
	ends(0, "why\n", false)
	write(1, ctl.Stderr, "what\nwh")
	write(1, ctl.Stderr, "y\n")
	write(0, ctl.Stdout, "elsewhere\n")
	ends(1, "why\n", true)
	ends(1, "what\nwhy", true)
	ends(0, "why\n", false)
	ends(1, "how\nwhy\n", false)
	o.Log("gompirun: a line")
	ends(1, "why\n", false)
	write(1, ctl.Stderr, "again\n")
	ends(1, "again\n", true)
	write(0, ctl.Stderr, "another's\n")
	ends(1, "again\n", false)
	write(1, ctl.Stderr, strings.Repeat("x", 2*endSize)+"\nend\n")
	ends(1, "end\n", true)
}
