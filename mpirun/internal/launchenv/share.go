package launchenv

import (
	"fmt"

	"gompi/internal/env"
)

// Threads returns the values of GOMAXPROCS and OMP_NUM_THREADS for a rank, to be
// used where the user has not set them. The rank is bound to cpus CPUs, 0 if to none;
// it shares the cores of its host, and a quota of processors, if that is not 0, with the
// ranks there. Go needs a second thread to overlap communication with computation.
func Threads(cpus, cores, quota, ranks int) []string {
	share := cpus
	if share == 0 {
		share = cores / ranks
	}
	if quota > 0 {
		share = min(share, quota/ranks)
	}
	return []string{
		fmt.Sprintf("%s=%d", env.GoProcs, max(2, share)),
		fmt.Sprintf("%s=%d", env.OMPThreads, max(1, share)),
	}
}

// GPUs returns what makes a rank see the GPUs of a list in the order in which they were
// counted; nothing if there is none, which leaves it as it is.
func GPUs(list string) []string {
	if list == "" {
		return nil
	}
	return []string{env.CUDADevices + "=" + list, env.CUDAOrder + "=PCI_BUS_ID"}
}
