package mpirun

import (
	"bytes"
	"context"
	"os/exec"
	"strings"
	"testing"

	"gompi/mpirun/internal/testbed"
)

// examineBed runs gompirun doctor on the hosts of a bed.
func examineBed(t *testing.T, b *testbed.Bed, args ...string) (status int, lines []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*soon)
	defer cancel()
	cmd := exec.CommandContext(ctx, "gompirun", append([]string{"doctor", "-rsh", b.RSH()}, args...)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), strings.Split(out.String(), "\n")
}

func TestDoctorFindsWhatIsBetweenHosts(t *testing.T) {
	t.Parallel() // it waits most of the time
	b := testbed.New(t, 4)
	status, lines := examineBed(t, b, "-H", "host1,host2,host3")
	if status != 0 {
		t.Errorf("status %d of healthy hosts", status)
	}
	matches(t, "healthy", lines,
		`^host1 +[0-9]+ ms +0`, `^host3 +eth0 .* `+b.Addr(3)+`/24`,
		`^host1 +- +[0-9.]+ [0-9.]+.?s eth0 +[0-9.]+ [0-9.]+.?s eth0$`)

	// host1 has no way to host2, host3 refuses logins, and host4 has gone.
	if out, err := b.Command(1, "ip", "route", "add", "unreachable", b.Addr(2)+"/32").CombinedOutput(); err != nil {
		t.Fatalf("ip route: %v: %s", err, out)
	}
	b.StopServer(3)
	b.Silence(4)
	status, lines = examineBed(t, b, "-H", "host1,host2,host3,host4")
	if status != 1 {
		t.Errorf("status %d, want 1", status)
	}
	matches(t, "ill", lines,
		`^MEND +host1: does not reach host2: .*`+b.Addr(2)+`.*(no route to host|unreachable)`, `ip route get`,
		`^MEND +host3: .*refused`, `start sshd there`,
		`^MEND +host4: .*timed out`, `is it up`,
		`^host3 +failed`)
	b.Mend(4)
	b.AwaitEmpty(soon)
}
