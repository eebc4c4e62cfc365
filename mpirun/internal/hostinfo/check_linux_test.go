package hostinfo

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gompi/internal/seal"
	"gompi/mpirun/internal/ctl"
)

// begin begins a checkup on this machine.
func begin(t *testing.T, secret byte) *Check {
	t.Helper()
	h := BeginCheck(&ctl.Examine{Secret: [32]byte{secret}})
	t.Cleanup(h.Close)
	if f := h.Findings(); f.Port == 0 || f.Trouble != "" {
		t.Fatalf("it does not listen: %+v", f)
	}
	return h
}

// to asks for a host that listens on a port of this machine's loopback.
func to(port int) *ctl.Reach {
	return &ctl.Reach{Peer: 5, Addresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/8")}, Port: port, Limit: time.Minute,
		Send: 10 * time.Millisecond}
}

func TestHostsReachEachOther(t *testing.T) {
	a, b := begin(t, 1), begin(t, 1)
	got := a.Reach(to(b.Findings().Port))
	if got.Trouble != "" || got.Peer != 5 || got.Bytes < chunk || got.Took <= 0 || got.RoundTrip <= 0 ||
		!strings.HasPrefix(got.Address, "127.0.0.1:") {
		t.Errorf("got %+v, want a connection that was measured", got)
	}
}

func TestTroubleIsNamed(t *testing.T) {
	a := begin(t, 1)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	port := func(l net.Listener) int { return l.Addr().(*net.TCPAddr).Port }
	waits := to(port(silent))
	waits.Limit, waits.Send = time.Second, 0
	for _, tt := range []struct {
		name string
		m    *ctl.Reach
		want string
	}{
		{"another secret", to(begin(t, 2).Findings().Port), "another job answers there"},
		{"nobody", to(port(gone)), "connection refused"},
		{"silence", waits, "took the connection and did not answer: no answer"},
		{"no address", &ctl.Reach{Limit: time.Second}, "no address"},
	} {
		if got := a.Reach(tt.m); !strings.Contains(got.Trouble, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got.Trouble, tt.want)
		}
	}
}

func TestProcessesWithoutTheSecretLearnNothing(t *testing.T) {
	h := begin(t, 1)
	for _, says := range []string{"GET / HTTP/1.0\r\n\r\n" + strings.Repeat("x", 100),
		greeting + strings.Repeat("n", seal.NonceSize) + strings.Repeat("p", 32)} {
		conn, err := net.Dial("tcp", netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"),
			uint16(h.Findings().Port)).String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte(says)); err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(conn)
		if len(got) > seal.NonceSize || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%.20q is answered with %d bytes, %v; want a nonce at most, and the end", says, len(got), err)
		}
	}
}

func TestPortsOfTheRangeAreTaken(t *testing.T) {
	first, err := listen(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	port := first.Addr().(*net.TCPAddr).Port
	if l, err := listen(port, port); err == nil {
		l.Close()
		t.Errorf("port %d is taken, and given", port)
	}
}

func TestHostFactsAreReadFromWhatTheKernelWrites(t *testing.T) {
	for limit, want := range map[string]int{"max 100000\n": ctl.Unlimited, "150000 100000\n": 1500} {
		if got := milliCPUs(inGroup(t, "cpu.max", limit)); got != want {
			t.Errorf("quota %q: %d, want %d", limit, got, want)
		}
	}
	f := new(ctl.Findings)
	if examine(f); f.Memory <= f.MemoryFree || f.MemoryFree <= 0 {
		t.Errorf("memory: %d and %d", f.Memory, f.MemoryFree)
	}
	for limit, want := range map[string]int64{"max\n": ctl.Unlimited, "4096\n": 4096,
		"9223372036854771712\n": ctl.Unlimited} {
		if got := memoryLimit(inGroup(t, "memory.max", limit), 1<<30); got != want {
			t.Errorf("limit %q: %d, want %d", limit, got, want)
		}
	}
}

// inGroup returns the root of a file tree in which this process is in a control group
// with a limit.
func inGroup(t *testing.T, file, limit string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"proc/self/cgroup":          "0::/job\n",
		"proc/self/mountinfo":       "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
		"sys/fs/cgroup/job/" + file: limit,
	} {
		file := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o777),
			os.WriteFile(file, []byte(text), 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}
