package boot

import (
	"fmt"
	"strconv"
	"strings"

	"gompi/internal/boot/pmi"
	"gompi/internal/boot/pmix"
	"gompi/internal/env"
)

// A launcher is another program that starts several processes as one job, with the variables by
// which each process knows its rank.
type launcher struct {
	name, rank, size string
	local            string   // number of the processes on this host
	job              []string // variables whose values, together, only processes of one job share
	hint             string   // a command line that gompi can join, "" if there is nothing better
	counts           string   // number of processes of each program of its command line, in rank order
}

// launchers are tried from the top. Slurm comes after the launchers that may run inside one of its
// steps.
var launchers = [...]launcher{
	{"gompirun", env.Rank, env.Size, "", nil, "", ""},
	{"a PMI launcher (mpiexec, or srun --mpi=pmi2)", pmi.EnvRank, pmi.EnvSize, env.PMILocalSize,
		[]string{"PMI_JOBID", "SLURM_JOB_ID", "SLURM_STEP_ID"}, "", ""},
	{"Open MPI's mpirun", env.OMPIRank, env.OMPISize, env.OMPILocalSize,
		[]string{"PMIX_NAMESPACE", "OMPI_MCA_orte_hnp_uri"},
		"mpirun -x " + env.Rendezvous + "=file:///a/shared/folder ...", "OMPI_APP_CTX_NUM_PROCS"},
	{"MVAPICH's mpirun_rsh", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_SIZE",
		[]string{"MPIRUN_ID"}, "", ""},
	{"torchrun", env.TorchRank, env.TorchSize, env.TorchLocalSize,
		[]string{"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", env.TorchMasterAddr,
			env.TorchMasterPort}, "", ""},
	{"horovodrun", "HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_SIZE",
		[]string{"HOROVOD_GLOO_RENDEZVOUS_ADDR", "HOROVOD_GLOO_RENDEZVOUS_PORT"}, "", ""},
	{"PALS", "PALS_RANKID", "PALS_SIZE", "", []string{"PALS_APID"}, "", ""},
	{"Flux", "FLUX_TASK_RANK", "FLUX_JOB_SIZE", "", []string{"FLUX_JOB_ID"}, "", ""},
	{"JSM", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_LOCAL_SIZE",
		[]string{"LSB_JOBID", "JSM_JSRUN_ID"}, "", ""},
	{"srun", env.SlurmRank, env.SlurmStepSize, "", []string{"SLURM_JOB_ID", slurmStep}, "srun --mpi=pmi2 ...", ""},
}

const slurmStep = "SLURM_STEP_ID"

// A place is this process's place in the job of a launcher.
type place struct {
	launcher
	rank, size int
	program    int    // index among the programs of the launcher's command line
	local      bool   // all processes of the job are on this host
	job        string // the values of the launcher's job variables; "" if none is set
}

// find returns the place that getenv shows, or nil if this process is on its own. Two launchers
// that contradict each other are an error, because neither is more credible.
func find(getenv func(string) string) (*place, error) {
	var found *place
	for i := range launchers {
		p := launchers[i].place(getenv)
		switch {
		case p == nil:
		case p.launcher.size == env.SlurmStepSize && (found != nil || pmix.InStep(getenv)):
			// The step in which the other launcher runs has tasks of its own.
		case found == nil:
			found = p
		case p.rank != found.rank || p.size != found.size:
			return nil, fmt.Errorf("two launchers say different things: %s that this is rank %d of %d (%s, %s), %s that it is rank %d of %d (%s, %s); unset the variables of the one that did not start it",
				found.name, found.rank, found.size, found.launcher.rank, found.launcher.size, p.name, p.rank, p.size,
				p.launcher.rank, p.launcher.size)
		}
	}
	return found, nil
}

// place returns this process's place in l's job, or nil if l did not start the process.
func (l *launcher) place(getenv func(string) string) *place {
	rank, err := strconv.Atoi(getenv(l.rank))
	size, err2 := strconv.Atoi(getenv(l.size))
	if err != nil || err2 != nil || rank < 0 || rank >= size || size < 2 {
		return nil // a launcher of one process starts no job
	}
	p := &place{launcher: *l, rank: rank, size: size, program: programOf(rank, strings.Fields(getenv(l.counts)))}
	if l.size == env.SlurmStepSize {
		// In a shell inside an allocation, SLURM_STEP_ID is a name, not a number.
		if _, err := strconv.Atoi(getenv(slurmStep)); err != nil {
			return nil
		}
		p.local = getenv(env.SlurmStepNodes) == "1"
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

// programOf returns the index of a rank's program. counts has the number of ranks of each program.
func programOf(rank int, counts []string) int {
	for i, c := range counts {
		n, err := strconv.Atoi(c)
		if err != nil {
			break
		}
		if rank -= n; rank < 0 {
			return i
		}
	}
	return 0
}

// Announced returns the name of a variable by which getenv shows that this process is one of
// several of a job, or "".
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
	if pmix.Visible(getenv) {
		return pmix.EnvRank
	}
	return ""
}
