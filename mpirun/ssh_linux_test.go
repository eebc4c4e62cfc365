package mpirun

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gompi/internal/stress"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/inventory"
	"gompi/mpirun/internal/testbed"
)

// remotely runs gompirun on the hosts of b and returns its exit status, its output, and the lines
// of stderr.
func remotely(t *testing.T, b *testbed.Bed, args ...string) (int, string, []string) {
	t.Helper()
	cmd := exec.Command("gompirun", append([]string{"-rsh", b.RSH()}, args...)...)
	return finish(t, cmd)
}

// finish runs cmd, but not for ever.
func finish(t *testing.T, cmd *exec.Cmd) (int, string, []string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(2*soon, func() { cmd.Process.Signal(syscall.SIGQUIT) }).Stop()
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), stdout.String(), strings.Split(strings.TrimSpace(stderr.String()), "\n")
}

// matches fails the test unless each pattern matches one of lines.
func matches(t *testing.T, what string, lines []string, patterns ...string) {
	t.Helper()
	for _, p := range patterns {
		if !slices.ContainsFunc(lines, regexp.MustCompile(p).MatchString) {
			t.Errorf("%s: want a line that matches %q in\n%s", what, p, strings.Join(lines, "\n"))
		}
	}
}

func TestRanksOfSeveralHostsMeet(t *testing.T) {
	t.Parallel() // it waits for logins
	b := testbed.New(t, 4)
	status, out, output := remotely(t, b, "-q", "-H", "host1:2,host2:2,host3:2,host4:2", "rank", "meet", "goodbye")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if status != 0 || len(lines) != 8 {
		t.Fatalf("status %d, %d lines:\n%s\n%s", status, len(lines), out, strings.Join(output, "\n"))
	}
	for r := range 8 {
		matches(t, "meet", lines, fmt.Sprintf(`^rank %d of 8, local %d of 2, node %d of 4 on host%d, cards \[0 1 4 9 16 25 36 49\]$`, r, r%2, r/2, r/2+1))
	}
	// They also move data; loop does 200 allreduces and then has rank 1 fail.
	status, out, output = remotely(t, b, "-q", "-H", "host1:2,host2:2,host3:2,host4:2", "loop", "now")
	if status != 7 || strings.Count(out, "ready") != 8 {
		t.Errorf("loop: status %d, want 7, and 8 ranks that are ready:\n%s", status, out)
	}
	_, _, shown := remotely(t, b, "-display-map", "-H", "localhost,host2", "true")
	matches(t, "-display-map", shown, `^localhost: 1 rank .*, this machine$`, `^host2: 1 rank .*, by ssh$`)
	matches(t, "loop", output, `^gompirun: rank 1 on host1 exited with status 7 `)
	b.AwaitEmpty(soon)
}

// All unusable hosts are named, for any obstacle, each in one line with the last words of the
// failed command.
func TestHostsThatFailAreReportedTogether(t *testing.T) {
	t.Parallel() // it waits most of the time
	fake := t.TempDir()
	writeProgram(t, fake+"/uname", "#!/bin/sh\necho vax\n")
	b := testbed.Make(t, testbed.Config{Hosts: 5, SSHD: func(i int) string {
		return map[int]string{
			3: "PubkeyAuthentication no\nPasswordAuthentication yes",
			4: "SetEnv PATH=" + fake + ":/usr/bin:/bin",
		}[i]
	}})
	b.StopServer(2)
	b.Silence(5)
	begun := time.Now()
	status, out, output := remotely(t, b, "-q", "-H", "host1,host2,host3,host4,host5,nosuch.invalid", "echo", "hello")
	if status != statusFailed || out != "" || len(output) != 5 {
		t.Errorf("status %d, output %q, lines:\n%s", status, out, strings.Join(output, "\n"))
	}
	matches(t, "failures", output,
		`^gompirun: host2: .*`+b.Addr(2)+`.*Connection refused$`,
		`^gompirun: host3: .*Permission denied \(password\); want a key`,
		`^gompirun: host4: its processors are vax, those here `,
		`^gompirun: host5: .*timed out$`,
		`^gompirun: nosuch.invalid: .*Could not resolve`)
	if took := time.Since(begun); took > inventory.FailureTime+soon {
		t.Errorf("that took %v", took)
	}
	b.Mend(5)
	b.AwaitEmpty(soon)
}

// Agents that are none, or of another version, or end at once.
func TestAgentsThatFailAreReported(t *testing.T) {
	t.Parallel() // it waits most of the time
	b := testbed.New(t, 1)
	old := filepath.Join(t.TempDir(), "old")
	if err := os.WriteFile(old, ctl.Append([]byte("Welcome\n"+ctl.Magic), &ctl.Hello{Version: "0.0.9"}),
		0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ agent, within, want string }{
		{"cat " + old + "; sleep 100; true", "60",
			`^gompirun: host1: its gompirun is version "0.0.9", want ` + regexp.QuoteMeta(ctl.Version) + ` as here$`},
		{"echo no disk >&2; exit 3; true", "60", `^gompirun: host1: ssh exited with status 3: no disk$`},
		{"nosuchagent", "60", `^gompirun: host1: ssh exited with status 127: .*nosuchagent.*not found`},
		{"yes; true", "60", `^gompirun: host1: it printed 65536 bytes and is no agent: "y\\ny`},
		{"sleep 100; true", "2", `^gompirun: host1: no agent after 2s`},
	} {
		status, _, output := remotely(t, b, "-q", "-launch-agent", tt.agent, "-start-timeout", tt.within, "-H",
			"host1", "true")
		if status != statusFailed {
			t.Errorf("%s: status %d, want %d", tt.agent, status, statusFailed)
		}
		matches(t, tt.agent, output, tt.want)
		for _, p := range b.Processes(1) { // they do not know that they should end with their channel
			if p.Command == "sleep 100" {
				syscall.Kill(p.PID, syscall.SIGKILL)
			}
		}
	}
}

// Ctrl-C and the job's time limit work during the wait for hosts, and the line names the missing
// hosts.
func TestStartUpCanBeEnded(t *testing.T) {
	t.Parallel() // it waits most of the time
	b := testbed.New(t, 2)
	b.Silence(2)
	status, _, output := remotely(t, b, "-timeout", "20", "-start-timeout", "60", "-H", "host1,host2", "true")
	if status != statusTimeout {
		t.Errorf("-timeout: status %d, want %d", status, statusTimeout)
	}
	matches(t, "-timeout", output, `^gompirun: [01] of 2 agents are up, waiting for (host1, )?host2$`,
		`^gompirun: time limit of 20s reached while waiting for host2$`)
	k := startTalk(t, "-rsh", b.RSH(), "-H", "host1,host2", "true")
	k.expect("agents are up, waiting for host") // host2, and on a busy machine host1 before it
	k.cmd.Process.Signal(syscall.SIGINT)
	k.expect("gompirun: interrupted")
	k.ends(130)
	b.AwaitEmpty(soon)
}

// Users may ask to wait for a host that is only just booting.
func TestHostsMayStartLater(t *testing.T) {
	t.Parallel() // it waits most of the time
	b := testbed.New(t, 1)
	b.StopServer(1)
	k := startTalk(t, "-rsh", b.RSH(), "-start-timeout", "60", "-H", "host1", "hostname")
	k.expect("0 of 1 agents are up, waiting for host1")
	b.StartServer(1)
	k.expect("host1")
	if err := k.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// A host that freezes while it starts is not waited for longer than hosts may take.
func TestAHostThatFreezesAtTheStartEndsInTime(t *testing.T) {
	t.Parallel() // it waits most of the time
	b := testbed.New(t, 2)
	frozen := "kill -STOP $$; exec cat >/dev/null" // like a thawing agent, which finds its channel ended
	begun := time.Now()
	status, _, output := remotely(t, b, "-start-timeout", "2", "-launch-agent", "sh -c '"+frozen+"'", "-H",
		"host1,host2", "true")
	if took := time.Since(begun); status != statusFailed || took > soon {
		t.Errorf("status %d after %v, want %d after 2 s", status, took, statusFailed)
	}
	matches(t, "frozen", output, `^gompirun: host1: (the agent has not said hello|no agent) after 2s`,
		`^gompirun: host2: (the agent has not said hello|no agent) after 2s`)
	eventually(t, "what has frozen to end", func() bool { // it may freeze after gompirun has ended
		left := append(b.Processes(1), b.Processes(2)...)
		for _, p := range left {
			syscall.Kill(p.PID, syscall.SIGCONT)
		}
		return len(left) == 0
	})
}

// Variables of other launchers say how to log in, if nothing of ours does.
func TestOtherLaunchersVariablesSayHowToLogIn(t *testing.T) {
	b := testbed.New(t, 1)
	t.Setenv("OMPI_MCA_plm_rsh_agent", "ssh : rsh")
	t.Setenv("OMPI_MCA_plm_rsh_args", "-F "+b.SSHConfig)
	status, out, output := finish(t, b.Command(0, "gompirun", "-q", "-H", "host1", "hostname"))
	if status != 0 || out != "host1\n" {
		t.Errorf("status %d, %q; want host1: %s", status, out, strings.Join(output, "\n"))
	}
	t.Setenv("OMPI_MCA_plm_rsh_agent", "'ssh")
	status, _, output = finish(t, exec.Command("gompirun", "-q", "-H", "host1", "hostname"))
	if status != statusFailed || !strings.Contains(output[0], "OMPI_MCA_plm_rsh_agent, OMPI_MCA_plm_rsh_args: ") {
		t.Errorf("status %d, %q; want which variables are wrong", status, output)
	}
}

// Hosts that share no folder with the launcher are sent gompirun, and with
// -preload-binary the program, once.
func TestHostsAreSentWhatTheyLack(t *testing.T) {
	t.Parallel() // it waits for logins
	private, cache := t.TempDir(), t.TempDir()
	b := testbed.Make(t, testbed.Config{Hosts: 2, Private: []string{private, cache}, SSHD: func(int) string {
		return "SetEnv XDG_CACHE_HOME=" + cache
	}})
	gompirun := filepath.Join(private, "gompirun")
	copyProgram(t, "gompirun", gompirun)
	copyProgram(t, "rank", filepath.Join(private, "rank"))
	run := func(args ...string) (int, string, []string) {
		t.Helper()
		cmd := exec.Command(gompirun, append([]string{"-q", "-rsh", b.RSH(), "-H", "host1,host2"}, args...)...)
		cmd.Dir = private
		cmd.Env = append(os.Environ(), "PATH=/usr/bin:/usr/sbin:/bin:/sbin") // where ./rank is not
		return finish(t, cmd)
	}
	cached := "cd " + cache + "/gompi-*; ls -i */*; stat -c %a . "
	status, before, output := run("sh", "-c", cached)
	if status != 0 || strings.Count(before, "/gompirun") != 2 || strings.Count(before, "700\n") != 2 {
		t.Fatalf("status %d, cached:\n%s\n%s", status, before, strings.Join(output, "\n"))
	}
	if _, after, _ := run("sh", "-c", cached); sorted(after) != sorted(before) {
		t.Errorf("cached:\n%s\nand then:\n%s", before, after)
	}

	// A gompirun of another build at our path is passed over.
	b.Put(2, gompirun, "#!/bin/sh\nprintf '\\000gompi other 0.0.9\\n'\n")
	if status, out, output := run("hostname"); status != 0 || sorted(out) != "host1\nhost2" {
		t.Errorf("another build: status %d, %q\n%s", status, out, strings.Join(output, "\n"))
	}

	status, _, output = run("./rank", "meet", "goodbye")
	if status != 127 {
		t.Errorf("a program that hosts lack: status %d, want 127", status)
	}
	matches(t, "lacking", output, `^gompirun: rank \d on host\d: cannot run "./rank": no such file`)
	for range 2 {
		status, out, output := run("-preload-binary", "./rank", "meet", "goodbye")
		if status != 0 || strings.Count(out, "cards [0 1]") != 2 {
			t.Errorf("-preload-binary: status %d\n%s\n%s", status, out, strings.Join(output, "\n"))
		}
	}
	if _, out, _ := run("sh", "-c", "ls "+cache+"/gompi-*/*"); strings.Count(out, "rank") != 2 {
		t.Errorf("cached in the end:\n%s", out)
	}
	cmd := exec.Command(gompirun, "-q", "-rsh", b.RSH(), "-np", "1", "-H", "host1", "-preload-binary", "cat")
	cmd.Stdin = strings.NewReader("input\n")
	if status, out, output := finish(t, cmd); status != 0 || out != "input\n" {
		t.Errorf("input: status %d, %q\n%s", status, out, strings.Join(output, "\n"))
	}
}

// Ranks find their host's own home and the launcher's variables and directory,
// however strange, also through a login that greets.
func TestRanksFindTheirSurroundings(t *testing.T) {
	t.Parallel() // it waits for logins
	dir := filepath.Join(t.TempDir(), "it's a $HOME; !")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	greeting := filepath.Join(t.TempDir(), "greet")
	writeProgram(t, greeting, "#!/bin/sh\necho Welcome.; seq 5000; printf 'no newline'\nexec sh -c \"$SSH_ORIGINAL_COMMAND\"\n")
	b := testbed.Make(t, testbed.Config{Hosts: 1, SSHD: func(int) string { return "ForceCommand " + greeting }})
	run := func(dir string, args ...string) (int, string, []string) {
		cmd := exec.Command("gompirun", append([]string{"-rsh", b.RSH(), "-H", "host1"}, args...)...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "STRANGE=it's\n$HOME `x` \"", "HOME=/nowhere", "DISPLAY=:0", "TMPDIR=/nowhere",
			"SSH_CLIENT=x")
		return finish(t, cmd)
	}
	status, out, output := run(dir, "sh", "-c",
		`echo "$(pwd -P) $PWD|$STRANGE|$HOME|$DISPLAY$TMPDIR$SSH_CLIENT|$MASTER_ADDR"`)
	want := fmt.Sprintf("%s %s|it's\n$HOME `x` \"|/root||127.0.0.1\n", dir, dir)
	if status != 0 || out != want {
		t.Errorf("status %d, %q, want %q\n%s", status, out, want, strings.Join(output, "\n"))
	}
	if status, _, output = run("/", "-wdir", "/nowhere", "true"); status != 125 {
		t.Errorf("-wdir: status %d", status)
	}
	matches(t, "-wdir", output, `^gompirun: rank 0 on host1: working directory "/nowhere": no such directory$`)

	// A directory that the host does not have is no error, but is said.
	private := t.TempDir()
	missing := filepath.Join(private, "work")
	if err := os.Mkdir(missing, 0o755); err != nil {
		t.Fatal(err)
	}
	b = testbed.Make(t, testbed.Config{Hosts: 1, Private: []string{private}})
	status, out, output = run(missing, "pwd")
	if status != 0 || out != "/root\n" {
		t.Errorf("status %d, %q", status, out)
	}
	matches(t, "missing", output, `^gompirun: host1: there is no directory `+missing+` here: its ranks start in /root$`)
}

// MASTER_ADDR is an address of rank 0's host that all hosts reach, also when
// that is the launcher's, or the launcher reaches hosts through tunnels that end at their loopback.
func TestHostsReachTheMaster(t *testing.T) {
	t.Parallel() // it waits for logins
	b := testbed.New(t, 2)
	config, err := os.OpenFile(b.SSHConfig, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		fmt.Fprintf(config, "Host tunnel%d\n  HostName 127.0.0.1\n  HostKeyAlias %s\n  ProxyCommand ssh -F %s -W %%h:%%p %s\n", i+1, b.Addr(i+1), b.SSHConfig, b.Name(i+1))
	}
	if err := config.Close(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ hosts, want string }{
		{"host1,host2", b.Addr(1)},
		{"host2,localhost", b.Addr(2)},
		{"localhost,host2", b.Here()},
		{"localhost,127.0.0.2", "127.0.0.1"},
		{"tunnel1,tunnel2", b.Addr(1)},
		{"host2,tunnel1", b.Addr(2)},
		{"localhost,tunnel1", b.Here()},
	} {
		status, out, output := finish(t, b.Command(0, "gompirun", "-rsh", b.RSH(), "-q", "-H", tt.hosts, "sh", "-c",
			"echo $MASTER_ADDR"))
		if want := tt.want + "\n" + tt.want + "\n"; status != 0 || out != want {
			t.Errorf("%s: status %d, %q, want %q\n%s", tt.hosts, status, out, want, strings.Join(output, "\n"))
		}
	}
	_, _, output := finish(t, b.Command(0, "gompirun", "-rsh", b.RSH(), "-master-addr", "nosuch.invalid", "-H",
		"localhost,host2", "true"))
	matches(t, "a name that hosts do not know", output,
		`^gompirun: host2: programs that meet at MASTER_ADDR=nosuch.invalid, .* do not find it from here: .*nosuch.invalid`)
	status, out, output := finish(t, b.Command(0, "gompirun", "-rsh", b.RSH(), "-q", "-H", "localhost:2,host2:2",
		"rank", "meet", "goodbye"))
	if status != 0 || strings.Count(out, "cards [0 1 4 9]") != 4 {
		t.Errorf("local and remote: status %d\n%s\n%s", status, out, strings.Join(output, "\n"))
	}
}

// Whatever dies, nothing is left on any host.
func TestNothingIsLeftOnHosts(t *testing.T) {
	t.Parallel() // it waits for logins
	b := testbed.New(t, 2)
	for _, how := range []struct {
		name string
		do   func(k *talk)
	}{
		{"gompirun killed", func(k *talk) { k.cmd.Process.Kill() }},
		{"ssh killed", func(k *talk) {
			for _, pid := range childrenOf(k.cmd.Process.Pid) {
				syscall.Kill(pid, syscall.SIGKILL)
				break
			}
		}},
		{"interrupted", func(k *talk) { k.cmd.Process.Signal(syscall.SIGINT) }},
	} {
		k := startTalk(t, "-rsh", b.RSH(), "-H", "host1:2,host2:2", "sh", "-c", victims)
		for range 4 {
			k.expect("ready")
		}
		how.do(k)
		b.AwaitEmpty(soon)
		k.cmd.Wait()
	}
}

// Processes left by ranks live on where the watchdog of a host would otherwise kill them.
func TestChildrenLiveOnOnHosts(t *testing.T) {
	t.Parallel() // it waits for logins
	b := testbed.New(t, 2)
	for status, script := range map[int]string{0: detaches, 4: failsAfter("sleep 1000")} {
		got, out, output := remotely(t, b, "-q", "-no-kill-children", "-H", "host1,host2", "sh", "-c", script,
			fifo(t, "go"))
		pids := children(t, out)
		if got != status {
			t.Errorf("status %d, want %d\n%s", got, status, strings.Join(output, "\n"))
		}
		if status == 0 {
			wantAlive(t, pids)
			for _, pid := range pids {
				syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		b.AwaitEmpty(soon)
	}
}

// A server that drops connections because there are many at once is asked again.
func TestDroppedConnectionsAreTriedAgain(t *testing.T) {
	t.Parallel()
	b := testbed.Make(t, testbed.Config{Hosts: 1, SSHD: func(int) string { return "MaxStartups 1:100:1" }})
	for round := 0; !strings.Contains(b.Log(1), "MaxStartups"); round++ {
		if round == 10 {
			t.Fatal("no connection has been dropped")
		}
		status, out, output := remotely(t, b, "-q", "-H", "host1,"+b.Addr(1), "hostname")
		if status != 0 || out != "host1\nhost1\n" {
			t.Errorf("status %d, %q\n%s", status, out, strings.Join(output, "\n"))
		}
	}
}

// A rank that floods the output, which is not read, stops only itself: not the ranks of other
// hosts, and not the end of the job.
func TestAFloodStopsOnlyTheRankThatMakesIt(t *testing.T) {
	t.Parallel()
	b := testbed.New(t, 2)
	done := filepath.Join(t.TempDir(), "done")
	if err := syscall.Mkfifo(done, 0o600); err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := exec.Command("gompirun", "-q", "-rsh", b.RSH(), "-H", "host1:2,host2:2", "-kill-delay", "1",
		"sh", "-c", `test $RANK = 0 && yes & rank meet goodbye >/dev/null; test $RANK = 3 && echo done >"$0"; sleep 1000`, done)
	cmd.Stdout, cmd.Stderr = w, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	defer cmd.Process.Kill()
	opened := make(chan error, 1)
	go func() { // until a rank opens the other end, or the test closes it
		_, err := os.ReadFile(done)
		opened <- err
	}()
	select {
	case err := <-opened:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(soon):
		t.Fatal("rank 3 has not come far while rank 0 floods")
	}
	cmd.Process.Signal(syscall.SIGTERM)
	for deadline := time.Now().Add(soon); slices.ContainsFunc(b.Processes(1), isRank); {
		if time.Now().After(deadline) {
			t.Fatalf("ranks have not ended: %v", b.Processes(1))
		}
		time.Sleep(5 * time.Millisecond) // no event tells that the processes of a host have ended
	}
	r.Close() // until then their output waits to be read
	cmd.Wait()
	b.AwaitEmpty(soon)
}

// More hosts than are logged in to at once.
func TestManyHostsStart(t *testing.T) {
	stress.Long(t, "a hundred agents on one machine: not in short runs")
	t.Parallel()
	there := filepath.Join(t.TempDir(), "there")
	writeProgram(t, there, "#!/bin/sh\nfor command; do :; done\nexec sh -c \"$command\"\n")
	status, out, output := finish(t, exec.Command("gompirun", "-q", "-rsh", there, "-H", "node[1-100].invalid", "rank",
		"meet", "goodbye"))
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if status != 0 || len(lines) != 100 {
		t.Fatalf("status %d, %d lines\n%s", status, len(lines), strings.Join(output, "\n"))
	}
	matches(t, "meet", lines, `^rank 99 of 100, local 0 of 1, node 99 of 100 on node100.invalid, `)
}

// isRank distinguishes ranks, and their children, from processes between them and the launcher.
func isRank(p testbed.Process) bool {
	return !strings.Contains(p.Command, "gompirun") && !strings.HasPrefix(p.Command, "sshd")
}

func sorted(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// copyProgram copies a program of PATH.
func copyProgram(t *testing.T, name, to string) {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	writeProgram(t, to, string(data))
}

// writeProgram writes a program while no other test starts a process: that would have the open file
// until it executes, and so the program could not be executed (ETXTBSY).
func writeProgram(t *testing.T, path, text string) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}
