//go:build linux && cgo

package ucp

import (
	"bufio"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// loopback is a worker over UCX's tcp.
func loopback(t *testing.T) *Worker { return opened(t, Options{Size: 1, TLS: "tcp", Devices: "lo"}) }

func opened(t *testing.T, o Options) *Worker {
	w, err := Open(o)
	if err != nil {
		t.Skipf("left out: %v (Debian has it as libucx0)", err)
	}
	t.Cleanup(func() {
		if n, _ := w.Close(); n > 0 {
			t.Errorf("%d operations under way at the end", n)
		}
	})
	return w
}

// abi.h agrees with UCX's headers on UCX's structs and constants.
func TestOurHeaderAgreesWithUCXs(t *testing.T) {
	const header = "/usr/include/ucp/api/ucp.h"
	if _, err := os.Stat(header); err != nil {
		t.Skipf("left out: no %s (Debian has it in libucx-dev)", header)
	}
	if out, err := exec.Command("cc", "-fsyntax-only", "-Wall", "-Werror",
		"testdata/abi.c").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestALibraryThatIsMissingIsNamed(t *testing.T) {
	for _, library := range []string{"libgompi-has-none.so.0", "libm.so.6"} {
		if err := open(library); err == nil || !strings.Contains(err.Error(), library) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v: want one line that names it", library, err)
		}
	}
}

// Signals are Go's: UCX handles none.
func TestSignalsStayGos(t *testing.T) {
	loopback(t)
	ucx := mappings(t, "libuc")
	for signal := range uintptr(64) {
		var action [32]byte // struct kernel_sigaction: the handler comes first
		unix.RawSyscall6(unix.SYS_RT_SIGACTION, signal+1, 0, uintptr(unsafe.Pointer(&action)), 8, 0, 0)
		handler := *(*uintptr)(unsafe.Pointer(&action))
		for _, m := range ucx {
			if handler >= m[0] && handler < m[1] {
				t.Errorf("UCX handles signal %d", signal+1)
			}
		}
	}
}

// mappings returns where files with this in their names are in memory.
func mappings(t *testing.T, name string) (ranges [][2]uintptr) {
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if line := lines.Text(); strings.Contains(line, name) {
			from, to, _ := strings.Cut(strings.Fields(line)[0], "-")
			a, _ := strconv.ParseUint(from, 16, 64)
			b, _ := strconv.ParseUint(to, 16, 64)
			ranges = append(ranges, [2]uintptr{uintptr(a), uintptr(b)})
		}
	}
	if len(ranges) == 0 {
		t.Fatalf("no %s in memory", name)
	}
	return ranges
}

func TestLanesNameTransportsAndDevices(t *testing.T) {
	w := loopback(t)
	if err := w.Connect(0, w.Address()); err != nil {
		t.Fatal(err)
	}
	if got, want := w.Lanes(0), []string{"tcp/lo"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	w.Disconnect(0)
	if got := w.Lanes(0); got != nil {
		t.Errorf("without a connection: got %q", got)
	}
}

// A worker that can register no more chunks has its peers wait until some are free.
func TestPayloadsWaitForChunks(t *testing.T) {
	const senders, each = 3, 40
	receiver := opened(t, Options{Size: senders + 1, TLS: "tcp", Devices: "lo", Slabs: 1})
	data := make([]byte, ChunkSize)
	var all [senders]*Worker
	for i := range all {
		w := opened(t, Options{Rank: i + 1, Size: senders + 1, TLS: "tcp", Devices: "lo"})
		if err := w.Connect(0, receiver.Address()); err != nil {
			t.Fatal(err)
		}
		w.Admit(0, 7, uint64(i+1))
		receiver.Admit(i+1, uint64(i+1), 7)
		all[i] = w
	}
	var sent, got [senders]int
	next := func() bool {
		m, ok := receiver.Next()
		if !ok {
			return false
		}
		from := m.From - 1
		want := byte(16*from + got[from])
		if m.Err != nil || len(m.Data) != ChunkSize || m.Data[0] != want || m.Data[ChunkSize-1] != want {
			t.Fatalf("message %d of rank %d: error %v, %d bytes", got[from], m.From, m.Err, len(m.Data))
		}
		got[from]++
		receiver.Done(m)
		return true
	}
	progress := func() {
		for i, w := range all {
			w.Poll()
			data[0], data[ChunkSize-1] = byte(16*i+sent[i]), byte(16*i+sent[i])
			if sent[i] < each && w.Send(0, More, data) {
				sent[i]++
			}
		}
		receiver.Poll()
	}
	for deadline := time.Now().Add(20 * time.Second); got != [senders]int{each, each, each}; {
		if time.Now().After(deadline) {
			t.Fatalf("got %v of %d messages each", got, each)
		}
		for range 100 { // nothing is taken meanwhile: more wait than there are chunks
			progress()
		}
		for next() {
		}
	}
	for i, w := range all {
		receiver.Disconnect(i + 1)
		w.Disconnect(0)
	}
}

// connected returns two workers that may register chunks so often, and send to each other.
func connected(t *testing.T, slabs int) (both [2]*Worker) {
	for i := range both {
		both[i] = opened(t, Options{Rank: i, Size: 2, TLS: "tcp", Devices: "lo", Slabs: slabs})
	}
	for i, w := range both {
		if err := w.Connect(1-i, both[1-i].Address()); err != nil {
			t.Fatal(err)
		}
		w.Admit(1-i, uint64(5+i), uint64(6-i))
	}
	return both
}

// Two that can register no more chunks, and send to each other, both get all.
func TestChunksAreKeptToReceive(t *testing.T) {
	const each = 100
	both := connected(t, 1)
	data := make([]byte, ChunkSize)
	var sent, got [2]int
	for deadline := time.Now().Add(20 * time.Second); got != [2]int{each, each}; {
		if time.Now().After(deadline) {
			t.Fatalf("sent %v and got %v of %d messages each", sent, got, each)
		}
		for i, w := range both {
			for sent[i] < each && w.Send(1-i, More, data) {
				sent[i]++
			}
			w.Poll()
			for {
				m, ok := w.Next()
				if !ok {
					break
				}
				if m.Err != nil {
					t.Fatalf("message %d: %v", got[i], m.Err)
				}
				got[i]++
				w.Done(m)
			}
		}
	}
}

// While all chunks hold arrived messages, nothing can be sent, without other harm. When some are
// free again, Poll says so.
func TestASendWaitsForChunks(t *testing.T) {
	both := connected(t, 1)
	other := opened(t, Options{Rank: 1, Size: 2, TLS: "tcp", Devices: "lo"})
	if err := other.Connect(0, both[0].Address()); err != nil {
		t.Fatal(err)
	}
	other.Admit(0, 6, 5)
	data := make([]byte, ChunkSize)
	var held []Message
	sent := 0
	for deadline := time.Now().Add(20 * time.Second); len(held) < 16; {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d messages have come", len(held), sent)
		}
		if sent < 16 && other.Send(0, More, data) {
			sent++
		}
		other.Poll()
		both[0].Poll()
		if m, ok := both[0].Next(); ok {
			held = append(held, m)
		}
	}
	if both[0].Send(1, More, data) {
		t.Error("a message was sent from no chunk")
	}
	for both[0].Poll() > 0 {
	}
	if m, ok := both[0].Next(); ok {
		t.Fatalf("%+v has come", m)
	}
	for _, m := range held {
		both[0].Done(m)
	}
	if both[0].Poll() == 0 || !both[0].Send(1, More, data) {
		t.Error("chunks are free, and nobody says so")
	}
}
