package comm_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Ranks bear it that one of them stands still, and are told which when it is killed.
func TestRanksOverUCXAreStoppedAndKilled(t *testing.T) {
	asked := asUCX(t)
	gompirun := os.Getenv("COMM_TEST_GOMPIRUN") // where there is no Go to build it with
	if gompirun == "" {
		if testing.Short() {
			t.Skip("it builds gompirun and starts jobs")
		}
		gompirun = filepath.Join(t.TempDir(), "gompirun")
		if out, err := exec.Command("go", "build", "-o", gompirun, "gompi/mpirun/gompirun").CombinedOutput(); err != nil {
			t.Fatalf("go build: %v\n%s", err, out)
		}
	}
	if asked == "ucx" { // which is the default between hosts that have a device
		asked = ""
	}
	t.Setenv("GOMPI_TRANSPORT", asked) // of the ranks, which gompirun starts
	t.Setenv("GOMPI_LOG", "debug")
	for victim, kind := range []string{"allreduce", "alltoall", messages, "bcast", puts} {
		for _, n := range []int{5, 40_000} {
			d := disaster{kind, n, 4, "hier", victim % 4}
			t.Run(d.String(), func(t *testing.T) {
				lost, output := d.strike(t, d.command(gompirun, "-np", "4", "-H", "localhost:2,127.0.0.2:2"))
				// UCX's own tcp aborts a process that sends to one whose end it has just noticed.
				if asked == "ucx:tcp" {
					lost += strings.Count(output, "Fatal: unexpected error: Endpoint timeout")
				}
				if lost != d.ranks-1 {
					t.Errorf("%d ranks name rank %d, want all others: %s", lost, d.victim, output)
				}
				if !strings.Contains(output, "msg=connected part=ucx") {
					t.Errorf("no rank has used UCX: %s", output)
				}
			})
		}
	}
}
