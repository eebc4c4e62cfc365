package boot

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"gompi/internal/env"
)

// Open finds out how this process was started and joins its job: through the
// agent of gompirun, or as a job of its own, if no launcher's environment is
// visible. A process joins once.
//
// When some other launcher started this process as one of several, Open fails:
// each of them would be rank 0 of 1, and the job would be wrong without a word.
func Open() (Boot, error) {
	switch how := env.String(env.Boot); how {
	case "":
	case "alone":
		return Alone(), nil
	default:
		return nil, fmt.Errorf("%s=%q: want alone, or unset", env.Boot, how)
	}
	if os.Getenv(env.BootFD) != "" || os.Getenv(env.BootAddr) != "" {
		return openAgent()
	}
	if err := stranded(os.Getenv); err != nil {
		return nil, err
	}
	return Alone(), nil
}

// Alone returns a job of one rank.
func Alone() Boot {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return &newGroup(1, host).members[0]
}

// launchers are the variables by which a process can tell that some launcher
// started several of it.
var launchers = [...]struct{ name, rank, size string }{
	{"gompirun", env.Rank, env.Size},
	{"Open MPI's mpirun", env.OMPIRank, env.OMPISize},
	{"a PMI launcher (mpiexec, or srun --mpi=pmi2)", "PMI_RANK", "PMI_SIZE"},
	{"srun", "SLURM_STEP_ID", "SLURM_STEP_NUM_TASKS"},
	{"torchrun", env.TorchRank, env.TorchSize},
	{"horovodrun", "HOROVOD_RANK", "HOROVOD_SIZE"},
	{"PALS", "PALS_RANKID", "PALS_SIZE"},
	{"Flux", "FLUX_TASK_RANK", "FLUX_JOB_SIZE"},
	{"JSM", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE"},
}

// stranded returns an error if getenv shows that this process is one of several
// that a launcher started, which have no way to meet. Both variables must hold
// numbers: an interactive Slurm allocation has a step that is none.
func stranded(getenv func(string) string) error {
	for _, l := range launchers {
		size, err := strconv.Atoi(getenv(l.size))
		if err != nil || size < 2 {
			continue
		}
		if _, err := strconv.Atoi(getenv(l.rank)); err != nil {
			continue
		}
		if l.size == env.Size {
			return errChild
		}
		return fmt.Errorf("started by %s as one of %d processes (%s=%d), which gompi cannot join: each would be rank 0 of 1, %d times; start it with gompirun, or set %s=alone to run %d jobs of one rank",
			l.name, size, l.size, size, size, env.Boot, size)
	}
	return nil
}

// errChild is for children of ranks, and for ranks whose wrapper removed
// variables.
var errChild = errors.New("started by gompirun (" + env.Size + " is set) but not as a rank: " +
	env.BootFD + " and " + env.BootAddr + " are missing, as in children of a rank that has called Init; " +
	"set " + env.Boot + "=alone to run it as a job of one rank")
