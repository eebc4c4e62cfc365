//go:build linux

package mpirun

import (
	"context"
	"fmt"
	"math/bits"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gompi/comm"
	"gompi/internal/stress"
	"gompi/mpirun/internal/testbed"
)

// scaleMain is a rank that makes barriers and allreduces, and prints how many TCP connections and
// how many descriptors its process has then.
func scaleMain() {
	if err := scale(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func scale(ctx context.Context) error {
	c, err := comm.Init(ctx)
	if err != nil {
		return err
	}
	if err := comm.Barrier(ctx, c); err != nil {
		return err
	}
	for _, n := range []int{1, 8 << 10} { // by other algorithms
		v := make([]float64, n)
		if err := comm.Allreduce(ctx, c, v, v, comm.Sum); err != nil {
			return err
		}
	}
	connections, files, err := openHere()
	if err != nil {
		return err
	}
	fmt.Printf("has %d %d\n", connections, files)
	if err := comm.Barrier(ctx, c); err != nil {
		return err
	}
	return c.Close(ctx)
}

// openHere counts this process's established TCP connections, and its descriptors.
func openHere() (connections, files int, err error) {
	names, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		return 0, 0, err
	}
	var sockets []string
	for _, name := range names {
		if link, err := os.Readlink(name); err == nil && strings.HasPrefix(link, "socket:[") {
			sockets = append(sockets, strings.Trim(link, "socket:[]"))
		}
	}
	for _, name := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		table, _ := os.ReadFile(name) // a host may have no IPv6
		for line := range strings.Lines(string(table)) {
			const state, established, inode = 3, "01", 9
			if f := strings.Fields(line); len(f) > inode && f[state] == established &&
				slices.Contains(sockets, f[inode]) {
				connections++
			}
		}
	}
	return connections, len(names), nil
}

// A job of barriers and allreduces over TCP opens O(log p) connections for each rank, and besides
// them only the doorbells of the host's ranks: docs/scale.md. Two ranks that connect to each
// other at once have two connections for a moment, which on a busy machine may be the moment of
// the count: then the job is run again.
func TestARankOpensFewConnections(t *testing.T) {
	for _, p := range []int{8, 16, 64} {
		if p > 16 && testing.Short() {
			continue
		}
		excess := connectionsBeyond(t, p)
		for end := time.Now().Add(soon); excess != "" && time.Now().Before(end); {
			excess = connectionsBeyond(t, p)
		}
		if excess != "" {
			t.Errorf("np=%d: %s", p, excess)
		}
	}
}

// connectionsBeyond runs a job of p ranks, and says which rank has too many connections or
// descriptors, if one has.
func connectionsBeyond(t *testing.T, p int) (excess string) {
	t.Helper()
	out, err := exec.Command("gompirun", "-q", "-np", strconv.Itoa(p), "-x", "GOMPI_TRANSPORT=tcp",
		"scale").CombinedOutput()
	if err != nil {
		t.Fatalf("np=%d: %v: %s", p, err, out)
	}
	ranks, log := 0, bits.Len(uint(p-1))
	for line := range strings.Lines(string(out)) {
		var connections, files int
		if _, err := fmt.Sscanf(line, "has %d %d", &connections, &files); err != nil {
			t.Fatalf("np=%d prints %q", p, line)
		}
		ranks++
		const others = 24 // standard streams, segment, sockets of agent and listener, poll sets
		if connections < 1 || connections > 2*log || files > p+connections+others {
			excess = fmt.Sprintf("a rank has %d connections and %d descriptors, want 1 to %d and at most %d",
				connections, files, 2*log, p+connections+others)
		}
	}
	if ranks != p {
		t.Errorf("%d of %d ranks report", ranks, p)
	}
	return excess
}

// Where very many ranks share a processor the kernel may let their threads sleep longer, which
// keeps the monitor threads of Go programs from taking it.
func TestRanksThatShareAProcessorHaveTimerSlack(t *testing.T) {
	if _, err := exec.LookPath("taskset"); err != nil {
		t.Skip("needs taskset, of util-linux")
	}
	own, err := os.ReadFile("/proc/self/timerslack_ns")
	if err != nil {
		t.Skip("needs a kernel that reports timer slack")
	}
	_, cpus := allowedHere(t)
	for p, want := range map[int]string{8: string(own), 9: "5000000\n", 60: "6000000\n"} {
		out, err := exec.Command("taskset", "-c", strconv.Itoa(cpus[0]), "gompirun", "-q", "-oversubscribe", "-np",
			strconv.Itoa(p),
			"cat", "/proc/self/timerslack_ns").CombinedOutput()
		if err != nil || string(out) != strings.Repeat(want, p) {
			t.Errorf("np=%d on one processor: %v: timer slack %q, want %q for each", p, err, out, want)
		}
	}
}

// Real hosts, each with its sshd, in a network namespace: a tree of agents, and where there are
// many a star, too, whose cost at the launcher is told.
func TestStressManyHosts(t *testing.T) {
	hosts, perHost, logins := 4, 2, map[int]int{2: 2}
	if stress.Asked() {
		hosts, perHost, logins = 128, 8, map[int]int{64: 11, 0: 128}
	}
	b := testbed.New(t, hosts)
	var names []string
	for i := range hosts {
		names = append(names, b.Addr(i+1))
	}
	for fanout, want := range logins {
		sent, begun := b.Sent(), time.Now()
		cmd := exec.Command("gompirun", "-v", "-rsh", b.RSH(), "-H", strings.Join(names, ","), "-fanout",
			strconv.Itoa(fanout),
			"-map-by", fmt.Sprintf("ppr:%d:node", perHost), "scale")
		status, out, output := finish(t, cmd)
		took, text := time.Since(begun), strings.Join(output, "\n")
		cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime() // with its reaped children
		direct := len(regexp.MustCompile(`(?m)^gompirun: agent on \S+: \S+ \(`).FindAllString(text, -1))
		if ranks := strings.Count(out, "has "); status != 0 || ranks != hosts*perHost || direct != want {
			t.Errorf("status %d, %d ranks of %d report, %d logins from here, want %d\n%s", status, ranks, hosts*perHost,
				direct, want, text)
		}
		b.AwaitEmpty(time.Minute)
		t.Logf("-fanout %d: %d ranks in %.1f s; here %d logins, with gompirun %.2f s of a processor, %.2f MB sent",
			fanout, hosts*perHost, took.Seconds(), direct, cpu.Seconds(), float64(b.Sent()-sent)/1e6)
	}
}
