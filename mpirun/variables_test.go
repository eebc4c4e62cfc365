package mpirun

import (
	"slices"
	"testing"
)

func TestRanksGetTheEnvironmentButForOthersRanks(t *testing.T) {
	in := []string{
		"PATH=/bin", "GOMPI_LOG=debug", "GOMPI_RANK=3", "GOMPI_BOOT_FD=3", "RANK=1", "WORLD_SIZE=2", "RANKED=1", "PMI_FD=5", "PMIX_ID=x",
		"OMPI_COMM_WORLD_RANK=1", "OMPI_MCA_btl=tcp", "GOMAXPROCS=3", "OMP_NUM_THREADS=2", "SLURM_JOB_ID=7", "SLURM_PROCID=0",
		"TORCHELASTIC_RUN_ID=x", "EMPTY=",
	}
	want := []string{"PATH=/bin", "GOMPI_LOG=debug", "RANKED=1", "OMPI_MCA_btl=tcp", "GOMAXPROCS=3", "OMP_NUM_THREADS=2", "SLURM_JOB_ID=7", "EMPTY="}
	if got := forwarded(in); !slices.Equal(got, want) {
		t.Errorf("forwarded %q, want %q", got, want)
	}
}
