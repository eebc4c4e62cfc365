package mpirun

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"gompi/internal/stress"
	"gompi/mpirun/internal/testbed"
)

// TestAJobContinuesWithoutAHostThatIsCutOff cuts the cable of one of three hosts.
func TestAJobContinuesWithoutAHostThatIsCutOff(t *testing.T) {
	stress.Long(t, "it takes its time to be sure that a host is lost")
	t.Parallel() // it waits most of the time
	b := testbed.New(t, 3)
	const program = `rank meet goodbye; test $WORLD_SIZE = 2 || sleep 1000`
	cmd := exec.Command("gompirun", "-q", "-rsh", b.RSH(), "-H", "host1,host2,host3", "-min-np", "2", "sh",
		"-c", program)
	n := &node{cmd: cmd, status: make(chan int, 1)}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &n.out, &n.err, 5*time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	go func() {
		cmd.Wait()
		n.status <- cmd.ProcessState.ExitCode()
	}()
	n.awaitOutput(t, " of 3", 3)
	b.Cut(3)
	n.wants(t, 0)
	n.awaitOutput(t, " of 2", 2)
	output := strings.Split(n.err.String(), "\n")
	if !slices.ContainsFunc(output, func(line string) bool {
		return strings.HasPrefix(line, "gompirun: continuing without host3: ")
	}) {
		t.Errorf("gompirun says %q, want that it continues without host3", output)
	}
	b.Mend(3)
	b.AwaitEmpty(soon)
}
