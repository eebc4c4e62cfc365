package boot

import (
	"fmt"
	"strconv"
	"strings"

	"gompi/internal/boot/pmi"
	"gompi/internal/env"
)

// A launcher is another program that starts several processes as one job, and the variables by
// which each of them knows it.
type launcher struct {
	name, rank, size string
	local            string   // how many of the processes are on this host
	job              []string // what, together, only processes of one job share
	hint             string   // what to type for a start that gompi can join, "" if there is nothing better
}

// launchers are tried from the top. Slurm comes after those that may run inside
// one of its steps.
var launchers = [...]launcher{
	{"gompirun", env.Rank, env.Size, "", nil, ""},
	{"a PMI launcher (mpiexec, or srun --mpi=pmi2)", pmi.EnvRank, pmi.EnvSize, env.PMILocalSize, []string{"PMI_JOBID", "SLURM_JOB_ID", "SLURM_STEP_ID"}, ""},
	{"Open MPI's mpirun", env.OMPIRank, env.OMPISize, env.OMPILocalSize, []string{"PMIX_NAMESPACE", "OMPI_MCA_orte_hnp_uri"}, "mpirun -x " + env.Rendezvous + "=file:///a/shared/folder ..."},
	{"torchrun", env.TorchRank, env.TorchSize, env.TorchLocalSize,
		[]string{"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", env.TorchMasterAddr, env.TorchMasterPort}, ""},
	{"horovodrun", "HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_SIZE", []string{"HOROVOD_GLOO_RENDEZVOUS_ADDR", "HOROVOD_GLOO_RENDEZVOUS_PORT"}, ""},
	{"PALS", "PALS_RANKID", "PALS_SIZE", "", []string{"PALS_APID"}, ""},
	{"Flux", "FLUX_TASK_RANK", "FLUX_JOB_SIZE", "", []string{"FLUX_JOB_ID"}, ""},
	{"JSM", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_LOCAL_SIZE", []string{"LSB_JOBID", "JSM_JSRUN_ID"}, ""},
	{"srun", "SLURM_PROCID", slurmSize, "", []string{"SLURM_JOB_ID", slurmStep}, "srun --mpi=pmi2 ..."},
}

const (
	slurmSize  = "SLURM_STEP_NUM_TASKS"
	slurmStep  = "SLURM_STEP_ID"
	slurmNodes = "SLURM_STEP_NUM_NODES"
)

// A place is what a launcher states of this process.
type place struct {
	launcher
	rank, size int
	local      bool   // all processes of the job are on this host
	job        string // the values of the launcher's job variables; "" if none is set
}

// find returns the place that getenv shows, nil if this process is on its own. Launchers that
// contradict each other are an error: which one is to be believed?
func find(getenv func(string) string) (*place, error) {
	var found *place
	for i := range launchers {
		p := launchers[i].place(getenv)
		switch {
		case p == nil:
		case found == nil:
			found = p
		case p.launcher.size == slurmSize:
			// The step that the other launcher runs in has tasks of its own.
		case p.rank != found.rank || p.size != found.size:
			return nil, fmt.Errorf("two launchers say different things: %s that this is rank %d of %d (%s, %s), %s that it is rank %d of %d (%s, %s); unset the variables of the one that did not start it",
				found.name, found.rank, found.size, found.launcher.rank, found.launcher.size, p.name, p.rank, p.size, p.launcher.rank, p.launcher.size)
		}
	}
	return found, nil
}

// place returns the place that the launcher l names, nil if it did not start this process.
func (l *launcher) place(getenv func(string) string) *place {
	rank, err := strconv.Atoi(getenv(l.rank))
	size, err2 := strconv.Atoi(getenv(l.size))
	if err != nil || err2 != nil || rank < 0 || rank >= size || size < 2 {
		return nil // what starts one process alone, starts no job
	}
	p := &place{launcher: *l, rank: rank, size: size}
	if l.size == slurmSize {
		// In a shell inside an allocation SLURM_STEP_ID is a name, not a number.
		if _, err := strconv.Atoi(getenv(slurmStep)); err != nil {
			return nil
		}
		p.local = getenv(slurmNodes) == "1"
	} else {
		p.local = l.local != "" && getenv(l.local) == getenv(l.size)
	}
	var values []string
	for _, name := range l.job {
		if v := getenv(name); v != "" {
			values = append(values, name+"="+v)
		}
	}
	p.job = strings.Join(values, " ")
	return p
}

// Announced returns the name of a variable that getenv has because this process is one of several
// of a job, "" if there is none.
func Announced(getenv func(string) string) string {
	for _, name := range []string{env.BootFD, env.BootAddr} {
		if getenv(name) != "" {
			return name
		}
	}
	if getenv(pmi.EnvPort) != "" && getenv(pmi.EnvSize) != "1" {
		return pmi.EnvPort
	}
	for i := range launchers {
		if p := launchers[i].place(getenv); p != nil {
			return p.launcher.size
		}
	}
	return ""
}
