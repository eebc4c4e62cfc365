package core_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"gompi/internal/stress"
)

// ucxAborted is what UCX says when it ends a process of its own accord. Where its tcp stands in for
// a device it puts in software, and ends one in 300 jobs of which a rank that is put to dies:
// uct_tcp_ep_handle_put_ack asserts that an acknowledgement is awaited, and ucp_progress_rma_cmpl
// does not expect that one cannot be sent. Which rank the others then name is chance.
var ucxAborted = regexp.MustCompile(`tcp_ep\.c:\d+ +Assertion .*PUT_TX_WAITING_ACK|Fatal: unexpected error: Endpoint timeout`)

// Ranks bear it that one of them stands still, and are told which when it is killed.
func TestRanksOverUCXAreStoppedAndKilled(t *testing.T) {
	asked := asUCX(t)
	gompirun := os.Getenv("COMM_TEST_GOMPIRUN") // where there is no Go to build it with
	if gompirun == "" {
		stress.Long(t, "it builds gompirun and starts jobs")
		gompirun = buildGompirun(t)
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
				lost, output := d.strike(t, d.command(gompirun, "-np", "4", "-H", "localhost:2,127.0.0.2:2",
					"-kill-delay", "1m"))
				for again := 0; asked == "ucx:tcp" && ucxAborted.MatchString(output) && again < 5; again++ {
					lost, output = d.strike(t, d.command(gompirun, "-np", "4", "-H", "localhost:2,127.0.0.2:2",
						"-kill-delay", "1m"))
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
