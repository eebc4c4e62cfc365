package mpirun

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gompi/mpirun/internal/testbed"
)

// The hosts of batch systems other than Slurm, and of the MPI operator, are
// real hosts, which ssh reaches.
func TestAllocatedHostsAreReachedBySSH(t *testing.T) {
	t.Parallel() // it waits for logins
	b := testbed.New(t, 2)
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, set := range []string{
		"PBS_NODEFILE=" + file("pbs", "host1\nhost2\nhost2\n"),
		"LSB_MCPU_HOSTS=host1 1 host2 2",
		"PE_HOSTFILE=" + file("pe", "host1 1 all.q@host1 UNDEFINED\nhost2 2 all.q@host2 UNDEFINED\n"),
		"OMPI_MCA_orte_default_hostfile=" + file("operator", "host1 slots=1\nhost2 slots=2\n"),
		"HYDRA_HOST_FILE=" + file("hydra", "host1:1\nhost2:2\n"),
		"GOMPI_HOSTFILE=" + file("own", "host1 slots=1\nhost2 slots=2\n"),
	} {
		cmd := exec.Command("gompirun", "-rsh", b.RSH(), "-q", "sh", "-c", "echo $RANK $GOMPI_NODE $(hostname)")
		cmd.Env = append(os.Environ(), set)
		status, out, output := finish(t, cmd)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		slices.Sort(lines)
		if want := []string{"0 0 host1", "1 1 host2", "2 1 host2"}; status != 0 || !slices.Equal(lines, want) {
			t.Errorf("%s: status %d, %q, want %q\n%s", set, status, lines, want, strings.Join(output, "\n"))
		}
	}
}
