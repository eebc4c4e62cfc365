package shm

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestMain lets this program be the process that others read: it prints where its words are.
func TestMain(m *testing.M) {
	if os.Getenv("PROCMEM_TEST_CHILD") != "" {
		allowReading()
		text := bytes.Repeat([]byte("some memory "), 100_000)
		fmt.Println(uintptr(unsafe.Pointer(&text[0])), len(text))
		bufio.NewReader(os.Stdin).ReadByte() // until the parent has read it
		fmt.Fprintln(os.Stderr, text[0])
		return
	}
	os.Exit(m.Run())
}

func TestMemoryOfAnotherProcessIsReadAndWritten(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "PROCMEM_TEST_CHILD=1")
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer in.Close()
	var at uintptr
	var n int
	if _, err := fmt.Fscan(out, &at, &n); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, n)
	err := readMemory(cmd.Process.Pid, got, at)
	if err != nil && !errors.Is(err, errUnmapped) {
		t.Skipf("left out: %v", err)
	}
	if err != nil || string(got) != strings.Repeat("some memory ", 100_000) {
		t.Errorf("%v, and %d bytes like %q", err, n, got[:20])
	}
	if err := readMemory(cmd.Process.Pid, got, 8); !errors.Is(err, errUnmapped) {
		t.Errorf("of what is not there: %v, want %v", err, errUnmapped)
	}
	want := bytes.Repeat([]byte("other words "), 100_000)
	if err := writeMemory(cmd.Process.Pid, want[:n-1], at); err != nil {
		t.Errorf("writing: %v", err)
	}
	if err := readMemory(cmd.Process.Pid, got, at); err != nil || !bytes.Equal(got[:n-1], want[:n-1]) ||
		got[n-1] != ' ' {
		t.Errorf("read back: %v, and %d bytes like %q", err, n, got[:20])
	}
	if err := writeMemory(cmd.Process.Pid, want, 8); !errors.Is(err, errUnmapped) {
		t.Errorf("to what is not there: %v, want %v", err, errUnmapped)
	}
	if allocs := testing.AllocsPerRun(10, func() { err = readMemory(cmd.Process.Pid, got, at) }); allocs > 0 ||
		err != nil {
		t.Errorf("%v allocations, %v", allocs, err)
	}
}

func TestMemoryThatEndsIsNotThere(t *testing.T) {
	m, err := unix.Mmap(-1, 0, 3*os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	page := os.Getpagesize()
	if err := unix.Mprotect(m[page:], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	at := uintptr(unsafe.Pointer(&m[0]))
	if err := readMemory(os.Getpid(), make([]byte, page), at); err != nil {
		t.Skipf("left out: %v", err)
	}
	if err := readMemory(os.Getpid(), make([]byte, 2*page), at); !errors.Is(err, errUnmapped) {
		t.Errorf("%v, want %v", err, errUnmapped)
	}
	if err := readMemory(1<<22+1, make([]byte, 8), at); !errors.Is(err, errGone) {
		t.Errorf("of no process: %v, want %v", err, errGone)
	}
}

func TestSpansAreReadAndWrittenInTheirOrder(t *testing.T) {
	theirs, mine := make([]byte, 5000), make([]byte, 0, 5000)
	for i := range theirs {
		theirs[i] = byte(i % 251)
	}
	var here runtime.Pinner // their addresses are numbers here: on a stack that grows they would change
	here.Pin(&theirs[0])
	defer here.Unpin()
	base := uintptr(unsafe.Pointer(&theirs[0]))
	var spans []Span
	for at := len(theirs); at >= 4; at -= 4 { // more than the kernel takes at a time, backwards
		spans, mine = append(spans, Span{base + uintptr(at-4), 3}), append(mine, theirs[at-4:at-1]...)
	}
	got := make([]byte, len(mine))
	if err := readSpans(os.Getpid(), got, slices.Clone(spans)); err != nil {
		t.Skipf("left out: %v", err)
	}
	if !bytes.Equal(got, mine) {
		t.Errorf("%d spans are %v..., want %v...", len(spans), got[:12], mine[:12])
	}
	before := slices.Clone(theirs)
	for i := range mine {
		mine[i]++
	}
	for i, pos := len(theirs)-4, 0; i >= 0; i, pos = i-4, pos+3 {
		copy(before[i:], mine[pos:pos+3])
	}
	if err := writeSpans(os.Getpid(), mine, slices.Clone(spans)); err != nil || !bytes.Equal(theirs, before) {
		t.Errorf("%v, and what was written is not what was there but for the spans", err)
	}
	if err := readSpans(os.Getpid(), got[:16], []Span{{base, 8}, {8, 8}}); !errors.Is(err, errUnmapped) {
		t.Errorf("behind what is there: %v, want %v", err, errUnmapped)
	}
}

// A partial copy by the kernel continues within a span.
func TestTheRestOfSpansBeginsBehindWhatIsDone(t *testing.T) {
	for _, c := range []struct {
		n    int
		want []Span
	}{
		{0, []Span{{100, 4}, {200, 6}}},
		{3, []Span{{103, 1}, {200, 6}}},
		{4, []Span{{200, 6}}},
		{9, []Span{{205, 1}}},
		{10, nil},
	} {
		if got := behind([]Span{{100, 4}, {200, 6}}, c.n); !slices.Equal(got, c.want) {
			t.Errorf("behind %d bytes: %v, want %v", c.n, got, c.want)
		}
	}
}
