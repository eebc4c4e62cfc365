package mpirun

import (
	"os/exec"
	"strings"
	"testing"
)

// Where loopback is all that is up, be it of IPv6 alone, two names of this machine are two hosts
// whose ranks reach each other, and so do ranks of one host without shared memory.
func TestHostsOfOneMachineMeetWithoutANetwork(t *testing.T) {
	for _, without := range []string{"", "ip addr del 127.0.0.1/8 dev lo && "} {
		for _, args := range []string{"-H localhost:2,127.0.0.2:2", "-iface lo -H localhost:2,127.0.0.2:2",
			"-x GOMPI_TRANSPORT=tcp -np 4 -oversubscribe"} {
			cmd := exec.Command("unshare", "-n", "sh", "-c",
				"ip link set lo up && "+without+"exec gompirun -q "+args+" loop now")
			status, out, output := finish(t, cmd)
			if status == 1 && strings.Contains(strings.Join(output, "\n"), "unshare: ") {
				t.Skipf("a network namespace needs root: %s", output)
			}
			if status != 7 || strings.Count(out, "ready") != 4 { // rank 1 fails after 200 allreduces
				t.Errorf("%s%s: status %d, want 7, and 4 ranks that are ready:\n%s\n%s", without, args, status, out,
					strings.Join(output, "\n"))
			}
		}
	}
}
