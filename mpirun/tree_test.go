//go:build linux

package mpirun

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gompi/internal/stress"
)

// treeHosts returns flags that make seven hosts of this machine, and a tree of them: h1 and h5
// are started from here, h2 and h4 from h1, h3 from h2, h6 and h7 from h5. FAKEHOST is the name
// of a process's host. The login script runs refuse first.
func treeHosts(t *testing.T, refuse string) []string {
	t.Helper()
	rsh := filepath.Join(t.TempDir(), "rsh")
	// not exec: ssh is a process of its own
	script := "#!/bin/sh\nhost=$1; shift\n" + refuse + "\nFAKEHOST=$host sh -c \"$*\"\n"
	writeProgram(t, rsh, script)
	return []string{"-rsh", rsh, "-H", "h1,h2,h3,h4,h5,h6,h7", "-fanout", "2"}
}

// In a tree everything is as in a star: output, input, exit statuses, statistics.
func TestATreeOfAgentsWorksAsAStar(t *testing.T) {
	tree := func(args ...string) *exec.Cmd { return exec.Command("gompirun", append(treeHosts(t, ""), args...)...) }
	status, out, output := finish(t, tree("-v", "-stats", "scale"))
	if status != 0 || strings.Count(out, "has ") != 7 {
		t.Errorf("status %d, and ranks print\n%s", status, out)
	}
	matches(t, "a tree", output, `agent on h1: rsh \(`, `agent on h2: rsh from h1 `, `agent on h3: rsh from h2 `,
		`agent on h4: rsh from h1 `,
		`agent on h5: rsh \(`, `agent on h6: rsh from h5 `, `agent on h7: rsh from h5 `, `barrier`, `allreduce`)

	status, _, output = finish(t, tree("-q", "sh", "-c", `[ $RANK = 2 ] && exit 9; exec sleep 1000`))
	if status != 9 {
		t.Errorf("status %d, want that of rank 2, 9", status)
	}
	matches(t, "a failure", output, `^gompirun: rank 2 on h3 exited with status 9 \(pid \d+\)$`)

	cmd := tree("-q", "-stdin", "all", "sh", "-c", "wc -c; head -c 3000000 /dev/zero | tr '\\0' $RANK; echo")
	cmd.Stdin = strings.NewReader(strings.Repeat("x", 1<<20))
	status, out, output = finish(t, cmd)
	if status != 0 || strings.Count(out, "1048576\n") != 7 {
		t.Errorf("status %d, %d of 7 ranks have all input\n%s", status, strings.Count(out, "1048576\n"),
			strings.Join(output, "\n"))
	}
	for r := range 7 {
		if n := strings.Count(out, fmt.Sprint(r)); n < 3000000 {
			t.Errorf("%d bytes of rank %d", n, r)
		}
	}
}

// A treeRank is a rank of a job in a tree.
type treeRank struct{ pid, agent, watchdog, relay int } // relay: if its host has one

// startTree starts seven ranks that wait, by host: h1 is the first.
func startTree(t *testing.T, flags ...string) (*talk, []treeRank) {
	t.Helper()
	parent := func(pid int) int {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			t.Fatal(err)
		}
		return atoi(t, strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+2:]))[1])
	}
	args := slices.Concat(treeHosts(t, ""), flags, []string{"-q", "sh", "-c",
		`trap "echo USR1 $RANK" USR1; trap "echo saved; exit 0" TERM; echo ready $RANK $$; while :; do sleep 0.02; done`})
	k, ranks := startTalk(t, args...), make([]treeRank, 7)
	for range ranks {
		var r treeRank
		var n int
		if _, err := fmt.Sscanf(k.expect("ready"), "ready %d %d", &n, &r.pid); err != nil {
			t.Fatal(err)
		}
		r.agent = parent(r.pid)
		r.watchdog = parent(r.agent)
		r.relay = parent(r.watchdog)
		ranks[n] = r
	}
	return k, ranks
}

// allGone waits until nothing of some ranks is left.
func allGone(t *testing.T, what string, ranks []treeRank) {
	t.Helper()
	var pids []int
	for _, r := range ranks {
		pids = append(pids, r.pid, r.agent, r.watchdog, r.relay)
	}
	awaitGone(t, what, pids)
}

func TestSignalsReachAllRanksOfATree(t *testing.T) {
	k, ranks := startTree(t)
	k.cmd.Process.Signal(syscall.SIGUSR1)
	for range ranks {
		k.expect("USR1")
	}
	k.cmd.Process.Signal(syscall.SIGTSTP)
	for _, r := range ranks {
		awaitState(t, r.pid, "TD")
	}
	awaitState(t, k.cmd.Process.Pid, "T")
	k.cmd.Process.Signal(syscall.SIGCONT)
	k.cmd.Process.Signal(syscall.SIGTERM)
	for range ranks {
		k.expect("saved")
	}
	k.ends(143)
	allGone(t, "TERM", ranks)
}

// The loss of an agent or relay ends the job, and the hosts behind it, too; one line says so.
func TestWhoIsLostInATree(t *testing.T) {
	stress.Slow(t, "it waits for deadlines")
	for _, tt := range []struct {
		what string
		who  func([]treeRank) int
		sig  syscall.Signal
		says string
	}{
		{"a relay", func(r []treeRank) int { return r[0].relay }, syscall.SIGKILL,
			"gompirun: h1 is lost: rsh exited with status 137: Killed, and 4 ranks from 0 to 3 with it: through it were reached h2, h3, h4"},
		{"an inner relay", func(r []treeRank) int { return r[1].relay }, syscall.SIGKILL,
			"gompirun: h2 is lost: rsh exited with status 137: Killed, and 2 ranks from 1 to 2 with it: through it were reached h3"},
		{"a stopped relay", func(r []treeRank) int { return r[0].relay }, syscall.SIGSTOP,
			"; 4 ranks from 0 to 3 lost with it: through it were reached h2, h3, h4"},
		{"the agent beside a relay", func(r []treeRank) int { return r[4].agent }, syscall.SIGKILL,
			"gompirun: the agent on h5 exited with status 125: gompirun: the agent was killed by signal 9 (killed)"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			t.Parallel() // some wait for silence
			k, ranks := startTree(t, "-heartbeat", beat.String(), "-kill-delay", "1")
			who := tt.who(ranks)
			syscall.Kill(who, tt.sig)
			k.expect(tt.says)
			k.ends(statusFailed)
			if tt.sig == syscall.SIGSTOP {
				syscall.Kill(who, syscall.SIGKILL) // ssh's stand-in here is no connection that ends
			}
			allGone(t, tt.what, ranks)
		})
	}
}

// When gompirun is killed, nothing of its tree is left.
func TestAKilledLauncherLeavesNothingOfItsTree(t *testing.T) {
	k, ranks := startTree(t)
	k.cmd.Process.Kill()
	allGone(t, "gompirun is killed", ranks)
}

// Hosts that cannot be reached from others are logged in to from the launcher's host, which says so
// once; a host that cannot be reached at all is named.
func TestHostsThatOthersCannotReach(t *testing.T) {
	const refuse = `[ -z "$FAKEHOST" ] || { echo "root@$host: Permission denied (publickey)." >&2; exit 255; }`
	status, out, output := finish(t, exec.Command("gompirun",
		append(treeHosts(t, refuse), "rank", "meet", "goodbye")...))
	if status != 0 || strings.Count(out, "cards [0 1 4 9 16 25 36]") != 7 || len(output) != 1 {
		t.Errorf("status %d, and ranks print\n%s", status, out)
	}
	matches(t, "fallback", output, `^gompirun: h[23467]: it is logged in to from here, as others may be, since that did not work from h[125]: `+
		`.*Permission denied \(publickey\); want a key that ssh may use without asking \(-fanout 0: from here at once\)$`)

	const lost = `[ $host != h1 ] || { echo "ssh: connect to host $host port 22: No route to host" >&2; exit 255; }`
	status, _, output = finish(t, exec.Command("gompirun",
		append(treeHosts(t, lost), "-q", "rank", "meet", "goodbye")...))
	if want := []string{"gompirun: h1: ssh: connect to host h1 port 22: No route to host"}; status != statusFailed ||
		!slices.Equal(output, want) {
		t.Errorf("status %d, %q; want %q", status, output, want)
	}
}

// Other flags of jobs work in a tree, too.
func TestFlagsInATree(t *testing.T) {
	dir := t.TempDir()
	copyProgram(t, "rank", filepath.Join(dir, "rank"))
	cmd := exec.Command("gompirun", append(treeHosts(t, ""), "-q", "-preload-binary", "./rank", "meet", "goodbye")...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "XDG_CACHE_HOME="+filepath.Join(dir, "cache"))
	if status, out, output := finish(t, cmd); status != 0 || strings.Count(out, "cards [0 1 4 9 16 25 36]") != 7 {
		t.Errorf("-preload-binary: status %d, %s\n%s", status, out, strings.Join(output, "\n"))
	}

	const fails = `[ $RANK != 2 ] || [ -e failed ] || { touch failed; exit 9; }; exec rank meet goodbye`
	cmd = exec.Command("gompirun", append(treeHosts(t, ""), "-wdir", dir, "-max-restarts", "1", "sh", "-c", fails)...)
	if status, out, output := finish(t, cmd); status != 0 || strings.Count(out, "rank 2 of 7") != 1 {
		t.Errorf("-max-restarts: status %d, %s\n%s", status, out, strings.Join(output, "\n"))
	}

	siege{np: 7, deaths: 1, steps: 50, restore: true, flags: treeHosts(t, "")}.play(t, rand.New(rand.NewPCG(7, 0)))
}

// A job in a tree is seen, debugged and ended from where its gompirun runs.
func TestJobsInATreeAreSeen(t *testing.T) {
	k, ranks := startTree(t)
	job := jobOf(t, k.cmd.Process.Pid)
	ask := func(want string, args ...string) {
		t.Helper()
		out, err := exec.Command("gompirun", args...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%q: %v, want %q in\n%s", args, err, want, out)
		}
	}
	ask(" 7 hosts ", "ps", job)
	ask(fmt.Sprint(ranks[2].pid), "top", "-once", job)
	ask(fmt.Sprintf("on h3 debug %d", ranks[2].pid), "attach", "-job", job, "2", "-debugger", "echo on $FAKEHOST debug")
	ask("has ended with status 143", "kill", job)
	k.ends(143)
	allGone(t, "kill", ranks)
}

// With -min-np the host of a lost relay is left out, but not the hosts behind it.
func TestAJobGoesOnWithoutARelay(t *testing.T) {
	k, ranks := startTree(t, "-min-np", "3")
	syscall.Kill(ranks[1].relay, syscall.SIGKILL)
	k.expect("gompirun: continuing without h2: ")
	for range 6 {
		k.expect("ready")
	}
	k.cmd.Process.Signal(syscall.SIGTERM)
	k.ends(143)
	allGone(t, "TERM", ranks)
}

// A relay that hears nothing any more, and whose agents have ended for that, ends: the connection
// to its launcher may be cut without its noticing.
func TestARelayWithoutALauncherEnds(t *testing.T) {
	stress.Slow(t, "it waits for deadlines")
	t.Parallel() // it waits
	k, ranks := startTree(t, "-heartbeat", beat.String())
	// The launcher and its login processes are stopped, and nothing is closed.
	stopped := append([]int{k.cmd.Process.Pid}, childrenOf(k.cmd.Process.Pid)...)
	for _, pid := range stopped {
		syscall.Kill(pid, syscall.SIGSTOP)
	}
	begun := time.Now()
	for _, r := range ranks {
		awaitGone(t, "silence", []int{r.pid, r.agent, r.watchdog})
	}
	awaitGone(t, "silence", []int{ranks[1].relay, ranks[0].relay, ranks[4].relay})
	t.Logf("relays have ended after %v", time.Since(begun))
	for _, pid := range stopped[1:] {
		syscall.Kill(pid, syscall.SIGKILL)
	}
}
