package launchenv

import (
	"fmt"

	"gompi/internal/env"
)

// Threads returns GOMAXPROCS and OMP_NUM_THREADS for a rank, as defaults. The rank is bound to
// cpus CPUs, 0 for none. All ranks of a host share its cores, and its quota of processors, unless
// that is 0. Go needs a second thread to overlap communication with computation.
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

// GPUs returns variables that make a rank see the GPUs of a list in the order of their
// assignment; nothing for an empty list, so that the environment stays unchanged.
func GPUs(list string) []string {
	if list == "" {
		return nil
	}
	return []string{env.CUDADevices + "=" + list, env.CUDAOrder + "=PCI_BUS_ID"}
}
