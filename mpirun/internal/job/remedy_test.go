package job

import (
	"testing"
	"time"

	"gompi/mpirun/internal/cmdline"
	"gompi/mpirun/internal/ctl"
)

func TestWhatAProgramLacksIsReported(t *testing.T) {
	for _, says := range []string{"/usr/bin/python3: No module named gompi_torch\n", "ModuleNotFoundError: No module named 'gompi_torch'\n"} {
		t.Run(says, inBubble(func(t *testing.T) {
			k := newTestJob(t, &cmdline.Spec{KillDelay: time.Minute}, obedient(func(l *fakeAgent, rank int) {
				if rank == 1 {
					l.exits(ctl.Exited{Code: 1, Tail: []byte(says)})
				}
			}))
			k.wants(1, "gompirun: rank 1 on b exited with status 1 (pid 101)", "  | "+says[:len(says)-1],
				"gompirun: this Python has no gompi_torch: pip install gompi-*.whl, which make wheel puts into dist; see docs/pytorch.md")
		}))
	}
}
