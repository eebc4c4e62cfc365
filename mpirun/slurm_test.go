//go:build linux

package mpirun

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gompi/mpirun/internal/testbed"
)

// TestInSlurm runs gompirun in a real Slurm of three nodes.
func TestInSlurm(t *testing.T) {
	t.Parallel() // it waits most of the time
	bed := testbed.NewSlurm(t, 3)
	t.Run("salloc", func(t *testing.T) { inSalloc(t, bed) })
	t.Run("sbatch", func(t *testing.T) { inSbatch(t, bed) })
	t.Run("status", func(t *testing.T) { failsInSlurm(t, bed) })
	t.Run("step", func(t *testing.T) { inStep(t, bed) })
	t.Run("busy", func(t *testing.T) { besideOtherSteps(t, bed) })
	t.Run("gpus", func(t *testing.T) { gpusOfNodes(t, bed) })
	t.Run("filter", func(t *testing.T) { chosenFromSlurm(t, bed) })
	t.Run("tasks", func(t *testing.T) { describeRanks(t, bed) })
	t.Run("inner", func(t *testing.T) { launchInRanks(t, bed) })
	t.Run("master", func(t *testing.T) { meetWithoutNames(t, bed) })
	t.Run("stray", func(t *testing.T) { severalTasks(t, bed) })
	t.Run("jobs", func(t *testing.T) { listedInSlurm(t, bed) })
	t.Run("data", func(t *testing.T) { bytesPassThroughSrun(t, bed) })
	if testing.Short() {
		return
	}
	t.Run("lost", func(t *testing.T) { agentLostInSlurm(t, bed) })
	t.Run("sent", func(t *testing.T) { sentThroughSrun(t, bed) })
	t.Run("scancel", func(t *testing.T) { cancelled(t, bed) })
	t.Run("killed", func(t *testing.T) { launcherKilledInSlurm(t, bed) })
}

// inSlurm runs a command line in the bed and returns its output, line by line in alphabetical
// order, its stderr and its exit status.
func inSlurm(t *testing.T, bed *testbed.Slurm, args ...string) (lines []string, stderr string, status int) {
	t.Helper()
	for range 3 {
		if lines, stderr, status = onceInSlurm(t, bed, args...); !strings.Contains(stderr, lostAllocation) {
			break
		}
	}
	return lines, stderr, status
}

// lostAllocation is salloc's error when it has waited for nodes, on which an earlier job was
// still ending, and has lost the answer. Nothing has begun then.
const lostAllocation = "salloc: error: Job submit/allocate failed: No error"

func onceInSlurm(t *testing.T, bed *testbed.Slurm, args ...string) (lines []string, stderr string, status int) {
	t.Helper()
	cmd := bed.Command(args[0], args[1:]...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	lines = strings.Split(strings.TrimSpace(out.String()), "\n")
	slices.Sort(lines)
	return lines, errs.String(), cmd.ProcessState.ExitCode()
}

// whoAmI makes ranks print their rank, node, and Slurm's names of both.
const whoAmI = "echo $RANK $GOMPI_NODE $SLURMD_NODENAME $SLURM_PROCID $SLURM_LOCALID $SLURM_NTASKS"

func inSalloc(t *testing.T, bed *testbed.Slurm) {
	lines, stderr, status := inSlurm(t, bed, "salloc", "-Q", "-N3", "--ntasks-per-node=2", "gompirun", "-display-map",
		"sh", "-c", whoAmI)
	want := []string{"0 0 n1 0 0 6", "1 0 n1 1 1 6", "2 1 n2 2 0 6", "3 1 n2 3 1 6", "4 2 n3 4 0 6", "5 2 n3 5 1 6"}
	if !slices.Equal(lines, want) || status != 0 {
		t.Errorf("%q, status %d, want %q\n%s", lines, status, want, stderr)
	}
	if !strings.Contains(stderr, "hosts: Slurm job ") || !strings.Contains(stderr, "n3: 2 ranks on 2 slots") {
		t.Errorf("-display-map: %s", stderr)
	}
	lines, stderr, status = inSlurm(t, bed, "salloc", "-Q", "-N2", "--ntasks-per-node=2", "gompirun", "-N2",
		"echo", "hi")
	if len(lines) != 4 || status != 0 || !strings.Contains(stderr, "for srun's -N, a number of hosts, type -nnodes 2") {
		t.Errorf("-N2: %q, status %d\n%s", lines, status, stderr)
	}
	lines, stderr, status = inSlurm(t, bed, "salloc", "-Q", "-N2", "-w", "n1,n2", "-n3", "-c2", "gompirun", "rank",
		"meet", "goodbye")
	if len(lines) != 3 || !strings.HasPrefix(lines[2], "rank 2 of 3, local 0 of 1, node 1 of 2 on n2") || status != 0 {
		t.Errorf("%q, status %d\n%s", lines, status, stderr)
	}
}

// A job is listed and ended where it was started.
func listedInSlurm(t *testing.T, bed *testbed.Slurm) {
	const script = `gompirun -q sleep 1000 2>/dev/null & job=$!
until gompirun ps $job 2>/dev/null | grep -q sleeping; do sleep 0.05; done
gompirun ps $job | sed -n '2s/.* \(2 *n1,n2 .*\)/\1/p'
gompirun kill $job | cut -d' ' -f2-
wait $job; echo $?`
	lines, stderr, status := inSlurm(t, bed, "salloc", "-Q", "-N2", "-w", "n1,n2", "--ntasks-per-node=1", "sh",
		"-c", script)
	want := []string{"143", "2      n1,n2  running  sleep 1000", "has ended with status 143"}
	if !slices.Equal(lines, want) || status != 0 {
		t.Errorf("%q, status %d, want %q\n%s", lines, status, want, stderr)
	}
}

// batch runs a script by sbatch and returns its output.
func batch(t *testing.T, bed *testbed.Slurm, script string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/job", []byte("#!/bin/sh\n"+script), 0o777); err != nil {
		t.Fatal(err)
	}
	return submit(t, bed, nil, dir, dir+"/job")
}

// submit runs sbatch with more variables and arguments, and returns the job's output after its
// end. It must be the only job.
func submit(t *testing.T, bed *testbed.Slurm, env []string, dir string, args ...string) string {
	t.Helper()
	cmd := bed.Command("sbatch", append([]string{"--output=" + dir + "/out"}, args...)...)
	cmd.Env = append(cmd.Env, env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("sbatch: %v: %s", err, out)
	}
	left := bed.AwaitNoJobs(2 * soon) // --wait looks every ten seconds
	out, err := os.ReadFile(dir + "/out")
	if err != nil || left != "" {
		t.Fatalf("%v; jobs left: %q\n%s", err, left, out)
	}
	return string(out)
}

// In a batch script gompirun runs on the first node: its ranks there are no step, the ranks on
// other nodes are.
func inSbatch(t *testing.T, bed *testbed.Slurm) {
	out := batch(t, bed, `#SBATCH -N3 --ntasks-per-node=1 -c4
gompirun -v sh -c 'echo $RANK $SLURMD_NODENAME; squeue -h -s -j $SLURM_JOB_ID -o "%i on %N" >steps.$RANK'
cat steps.*; rm steps.*
echo status $?
`)
	for _, want := range []string{"0 n1\n", "1 n2\n", "2 n3\n", " on n2\n", " on n3\n", "status 0\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no line %q in\n%s", want, out)
		}
	}
	if regexp.MustCompile(`\.\d+ on n1\n`).MatchString(out) { // the script itself is .batch
		t.Errorf("a step runs on n1:\n%s", out)
	}
}

// The first failure is told, and its status comes through, as without Slurm.
func failsInSlurm(t *testing.T, bed *testbed.Slurm) {
	_, stderr, status := inSlurm(t, bed, "salloc", "-Q", "-N3", "--ntasks-per-node=1", "gompirun", "sh", "-c",
		"test $RANK = 2 && { echo out of cheese >&2; exit 7; }; exec sleep 1000")
	if status != 7 || !strings.Contains(stderr, "gompirun: rank 2 on n3 exited with status 7") ||
		!strings.Contains(stderr, "out of cheese") {
		t.Errorf("status %d, want 7\n%s", status, stderr)
	}
	_, stderr, status = inSlurm(t, bed, "salloc", "-Q", "-N2", "--ntasks-per-node=1", "gompirun", "nosuchprogram")
	if status != 127 || !strings.Contains(stderr, `cannot find "nosuchprogram"`) {
		t.Errorf("status %d, want 127\n%s", status, stderr)
	}
}

// Inside a step, as of srun --pty bash, all of the job's nodes are there.
func inStep(t *testing.T, bed *testbed.Slurm) {
	lines, stderr, status := inSlurm(t, bed, "salloc", "-Q", "-N3", "--ntasks-per-node=2",
		"srun", "-N1", "-n1", "--nodelist=n2", "gompirun", "-N", "1", "sh", "-c", whoAmI)
	want := []string{"0 0 n1 0 0 3", "1 1 n2 1 0 3", "2 2 n3 2 0 3"}
	if !slices.Equal(lines, want) || status != 0 {
		t.Errorf("%q, status %d, want %q\n%s", lines, status, want, stderr)
	}
}

// Agents share their nodes with steps that use all of them.
func besideOtherSteps(t *testing.T, bed *testbed.Slurm) {
	lines, stderr, status := inSlurm(t, bed, "salloc", "-Q", "-N2", "-c4", "sh", "-c",
		`srun --exact -c4 sh -c 'echo busy; exec sleep 1000' | { read line; gompirun echo done; scancel --signal=KILL $SLURM_JOB_ID.0; }`)
	if !slices.Equal(lines, []string{"done", "done"}) {
		t.Errorf("%q, status %d\n%s", lines, status, stderr)
	}
}

// Each rank sees the GPUs that its own node has for the job, however they were
// asked for. The nodes are named: one may still be about the end of the job before.
func gpusOfNodes(t *testing.T, bed *testbed.Slurm) {
	for _, ask := range []string{"--gpus=4", "--gres=gpu:2", "--gpus-per-node=2", "--gpus-per-task=2"} {
		lines, stderr, status := inSlurm(t, bed, "salloc", "-Q", "-N2", "-w", "n1,n2",
			"--ntasks-per-node=1", "-c4", ask,
			"gompirun", "sh", "-c", "echo $RANK $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES $SLURM_CPUS_ON_NODE")
		if want := []string{"0 n1 0,1 4", "1 n2 0,1 4"}; !slices.Equal(lines, want) || status != 0 {
			t.Errorf("%s: %q, status %d, want %q\n%s", ask, lines, status, want, stderr)
		}
	}
	// Of a node's GPUs ranks get only the job's.
	path := "PATH=" + topoProgram(t, withDevices("n", "", "", "", "")) + ":" + os.Getenv("PATH")
	lines, stderr, status := inSlurm(t, bed, "salloc", "-Q", "-N2", "-w", "n1,n2", "--ntasks-per-node=2",
		"--gres=gpu:1",
		"env", path, "gompirun", "-gpus-per-rank", "1", "sh", "-c", "echo $RANK $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES")
	if want := []string{"0 n1 0", "1 n1 0", "2 n2 0", "3 n2 0"}; !slices.Equal(lines, want) || status != 0 {
		t.Errorf("-gpus-per-rank: %q, status %d, want %q\n%s", lines, status, want, stderr)
	}
	_, stderr, status = inSlurm(t, bed, "salloc", "-Q", "-N1", "--ntasks-per-node=1", "--gres=gpu:2", "env", path,
		"gompirun", "-gpus-per-rank", "3", "true")
	if status != statusFailed || !strings.Contains(stderr, " has 2 GPUs for 1 rank") { // n1 may not be free again
		t.Errorf("more than the job has: status %d\n%s", status, stderr)
	}
}

func chosenFromSlurm(t *testing.T, bed *testbed.Slurm) {
	lines, stderr, status := inSlurm(t, bed, "salloc", "-Q", "-N3", "--ntasks-per-node=2", "gompirun", "-H",
		"n2,n3:1,n99", "sh", "-c", whoAmI)
	if want := []string{"0 0 n2 0 0 3", "1 0 n2 1 1 3", "2 1 n3 2 0 3"}; !slices.Equal(lines, want) || status != 0 {
		t.Errorf("%q, status %d, want %q\n%s", lines, status, want, stderr)
	}
	if !strings.Contains(stderr, "left out: n99") {
		t.Errorf("no word of n99: %s", stderr)
	}
}

func severalTasks(t *testing.T, bed *testbed.Slurm) {
	lines, stderr, status := inSlurm(t, bed, "srun", "-N2", "-n4", "gompirun", "echo", "hello")
	if status != statusFailed || lines[0] != "" || strings.Count(stderr, "gompirun: ") != 1 ||
		!strings.Contains(stderr, "gompirun: srun has started 4 of me") {
		t.Errorf("%q, status %d\n%s", lines, status, stderr)
	}
}

// Whatever ranks read and write passes through Slurm unchanged and at once.
func bytesPassThroughSrun(t *testing.T, bed *testbed.Slurm) {
	data := make([]byte, 3<<20)
	for i := range data {
		data[i] = byte(i ^ i>>8 ^ i>>16)
	}
	cmd := bed.Command("salloc", "-Q", "-N1", "gompirun", "cat")
	var errs strings.Builder
	cmd.Stdin, cmd.Stderr = bytes.NewReader(data), &errs
	if out, err := cmd.Output(); err != nil || !bytes.Equal(out, data) {
		t.Errorf("%v: %d bytes of %d, or others\n%s", err, len(out), len(data), &errs)
	}
	everythingPasses(t, bed)
	// A question and its answer, without the end of a line.
	cmd = bed.Command("salloc", "-Q", "-N1", "gompirun", "sh", "-c", "printf name?; read name; printf \"hello, $name\"")
	in, _ := cmd.StdinPipe()
	out := started(t, cmd)
	got := make([]byte, len("name?"))
	if _, err := io.ReadFull(out, got); err != nil || string(got) != "name?" {
		t.Errorf("%q, %v", got, err)
	}
	fmt.Fprintln(in, "world")
	rest, _ := io.ReadAll(out)
	if err := cmd.Wait(); err != nil || string(rest) != "hello, world" {
		t.Errorf("%q, %v", rest, err)
	}
}

// everythingPasses runs jobs that write as much output as may be in transit, and end: while srun
// still reads, the launcher sends credit to an ended agent.
func everythingPasses(t *testing.T, bed *testbed.Slurm) {
	t.Helper()
	const size, times = 320 << 10, 3
	cmd := bed.Command("salloc", "-Q", "-N1", "sh", "-ec",
		fmt.Sprintf(`for i in $(seq %d); do gompirun sh -c 'yes | head -c %d'; done`, times, size))
	var errs strings.Builder
	cmd.Stderr = &errs
	want := bytes.Repeat([]byte("y\n"), times*size/2)
	if out, err := cmd.Output(); err != nil || !bytes.Equal(out, want) {
		t.Errorf("%v: %d bytes of %d, or others\n%s", err, len(out), len(want), &errs)
	}
}

// startVictims starts a job on three nodes, from a batch script, whose ranks
// have children that leave their process groups, and returns the job
// and gompirun's process when all run. They sleep for mark seconds.
func startVictims(t *testing.T, bed *testbed.Slurm, mark string) (job string, launcher int) {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mkfifo(dir+"/ready", 0o600); err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf(`#!/bin/sh
#SBATCH -N3 --ntasks-per-node=1
echo $$ >%[1]s/pid
exec gompirun sh -c 'sleep %[2]s & setsid sleep %[2]s & echo ready >%[1]s/ready; wait'
`, dir, mark)
	if err := os.WriteFile(dir+"/job", []byte(script), 0o777); err != nil {
		t.Fatal(err)
	}
	out, err := bed.Command("sbatch", "--parsable", "--output="+dir+"/out", dir+"/job").Output()
	if err != nil {
		t.Fatal(err)
	}
	ready, err := os.OpenFile(dir+"/ready", os.O_RDWR, 0) // not the last reader when one rank has written
	if err != nil {
		t.Fatal(err)
	}
	defer ready.Close()
	lines := bufio.NewReader(ready)
	ready.SetReadDeadline(time.Now().Add(soon))
	for range 3 {
		if _, err := lines.ReadString('\n'); err != nil {
			log, _ := os.ReadFile(dir + "/out")
			t.Fatalf("%v: %s", err, log)
		}
	}
	pid, err := os.ReadFile(dir + "/pid")
	if err != nil {
		t.Fatal(err)
	}
	if launcher, err = strconv.Atoi(strings.TrimSpace(string(pid))); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out)), launcher
}

// awaitNone waits until no process has the word mark in its command line.
func awaitNone(t *testing.T, mark string) {
	t.Helper()
	var left []int
	for deadline := time.Now().Add(soon); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if left = having(mark); len(left) == 0 {
			return
		}
	}
	t.Errorf("processes left: %v", left)
}

// having returns the processes whose command lines hold the word mark.
func having(mark string) []int {
	var found []int
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		data, err := os.ReadFile(f)
		line := string(bytes.ReplaceAll(data, []byte{0}, []byte{' '}))
		if pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(f))); err == nil && strings.Contains(line, mark) {
			found = append(found, pid)
		}
	}
	return found
}

// srunTo returns the processes of srun that reach a node of this bed: others are up.
func srunTo(bed *testbed.Slurm, node string) []int {
	return slices.DeleteFunc(having("--nodelist="+node+" "), func(pid int) bool {
		env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		return !bytes.Contains(env, []byte("SLURM_CONF="+bed.Dir+"/"))
	})
}

// A step that is killed, and an srun that is, are agents that are lost.
func agentLostInSlurm(t *testing.T, bed *testbed.Slurm) {
	_, stderr, status := inSlurm(t, bed, "salloc", "-Q", "-N2", "--ntasks-per-node=1", "gompirun", "sh", "-c",
		`[ $RANK = 0 ] || scancel --signal=KILL $SLURM_JOB_ID; sleep 1000`)
	if status == 0 || !strings.Contains(stderr, "gompirun: ") {
		t.Errorf("status %d\n%s", status, stderr)
	}
	mark := fmt.Sprintf("1003.%d", os.Getpid())
	cmd := bed.Command("salloc", "-Q", "-N2", "--ntasks-per-node=1", "-w", "n1,n2", "gompirun", "-v", "sh", "-c",
		"sleep "+mark+" & setsid sleep "+mark+" & echo ready; wait")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	lines := started(t, cmd)
	for range 2 {
		if line, err := lines.ReadString('\n'); err != nil {
			t.Fatalf("%q, %v", line, err)
		}
	}
	srun := srunTo(bed, "n2")
	if len(srun) == 0 {
		t.Fatal("no srun for n2")
	}
	for _, pid := range srun {
		syscall.Kill(pid, syscall.SIGKILL)
	}
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != statusFailed ||
		!strings.Contains(errs.String(), "the agent on n2 is lost: srun was killed by signal 9") {
		t.Errorf("status %d, want %d\n%s", code, statusFailed, &errs)
	}
	awaitNone(t, mark)
}

// Nodes that have no gompirun at our path are sent ours.
func sentThroughSrun(t *testing.T, bed *testbed.Slurm) {
	path, err := exec.LookPath("gompirun")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	// The running program has no path any more.
	const script = `cp "$0" "$1/gompirun" && exec 9<"$1/gompirun" && rm "$1/gompirun" && exec -a gompirun /proc/self/fd/9 sh -c 'echo $SLURMD_NODENAME'`
	cmd := bed.Command("salloc", "-Q", "-N2", "--ntasks-per-node=1", "-w", "n1,n2", "bash", "-c", script, path, dir)
	cmd.Env = append(cmd.Env, "XDG_CACHE_HOME="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "n1\n") || !strings.Contains(string(out), "n2\n") {
		t.Errorf("%v: %s", err, out)
	}
	if sent, _ := filepath.Glob(dir + "/gompi-*/*/gompirun"); len(sent) != 1 {
		t.Errorf("in the cache is %q, want gompirun", sent)
	}
}

func cancelled(t *testing.T, bed *testbed.Slurm) {
	mark := fmt.Sprintf("1001.%d", os.Getpid())
	job, _ := startVictims(t, bed, mark)
	if n := len(having(mark)); n < 6 {
		t.Errorf("%d processes, want 6 or more", n)
	}
	if out, err := bed.Command("scancel", job).CombinedOutput(); err != nil {
		t.Fatalf("scancel: %v: %s", err, out)
	}
	awaitNone(t, mark)
	if left := bed.AwaitNoJobs(soon); left != "" {
		t.Errorf("the job is left: %s", left)
	}
}

func launcherKilledInSlurm(t *testing.T, bed *testbed.Slurm) {
	mark := fmt.Sprintf("1002.%d", os.Getpid())
	_, launcher := startVictims(t, bed, mark)
	if err := syscall.Kill(launcher, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	awaitNone(t, mark)
	if left := bed.AwaitNoJobs(soon); left != "" {
		t.Errorf("the job is left: %s", left)
	}
}
