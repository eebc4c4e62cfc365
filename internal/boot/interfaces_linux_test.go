package boot

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"

	"gompi/internal/boot/rank0"
	"gompi/internal/env"
)

// ownNetwork has the test run again in a process that has a network of its own, and
// reports whether this is that process.
func ownNetwork(t *testing.T) bool {
	t.Helper()
	const inside = "GOMPI_TEST_OWN_NETWORK"
	if os.Getenv(inside) != "" {
		ip(t, "link", "set", "lo", "up")
		return true
	}
	if out, err := exec.Command("unshare", "-n", "ip", "link").CombinedOutput(); err != nil {
		t.Skipf("left out: no network of its own can be made here (unshare -n ip link): %v %s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), "unshare", "-n", os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
	cmd.Env = append(os.Environ(), inside+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("on a network of its own: %v\n%s", err, out)
	}
	return false
}

func ip(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		t.Fatalf("ip %v: %v: %s", args, err, out)
	}
}

// Interfaces such as docker0 come and go: messages of ranks of one host to rank 0 do not pass
// through them, however many addresses it has there.
func TestRanksOfOneHostMeetWhateverInterfacesGo(t *testing.T) {
	if !ownNetwork(t) {
		return
	}
	ip(t, "link", "add", "br7", "type", "bridge")
	for i := range rank0.MaxAddrs - 1 {
		ip(t, "addr", "add", "10.7.0."+strconv.Itoa(i+1)+"/24", "dev", "br7")
	}
	ip(t, "link", "set", "br7", "up")
	t.Setenv(env.TorchMasterAddr, "10.7.0.1")
	t.Setenv(env.TorchMasterPort, "4000")
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	byFile := meetAll(t, ctx, 8, func(p *place) (Boot, error) { return openFile(ctx, p, dir) })
	byMaster := meetAll(t, ctx, 8, func(p *place) (Boot, error) { return openMaster(ctx, p, "0123456789abcdef") })
	for _, s := range append(byFile, byMaster...) {
		if tcp, ok := s.conn.RemoteAddr().(*net.TCPAddr); ok && !tcp.IP.IsLoopback() {
			t.Errorf("rank %d is connected to %v, want loopback", s.info.Rank, tcp)
		}
	}
	if t.Failed() {
		return
	}
	ip(t, "link", "del", "br7")
	for _, ranks := range [][]*client{byFile, byMaster} {
		if err := ranks[3].Revoke(7, nil); err != nil {
			t.Fatal(err)
		}
		for _, s := range ranks {
			if e := next(t, s); len(e) != 1 || e[0].Kind != Revoked {
				t.Errorf("rank %d hears %+v after the interface has gone", s.info.Rank, e)
			}
		}
	}
}

// meetAll opens n ranks that a launcher has not told to be on one host.
func meetAll(t *testing.T, ctx context.Context, n int, open func(*place) (Boot, error)) []*client {
	t.Helper()
	ranks, errs := make([]*client, n), make([]error, n)
	var all sync.WaitGroup
	for r := range n {
		all.Go(func() {
			b, err := open(&place{launcher: launcher{name: "a test"}, rank: r, size: n, job: "j=1"})
			if errs[r] = err; err == nil {
				ranks[r] = b.(*client)
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return ranks
}
