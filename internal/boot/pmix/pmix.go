// Package pmix is the client of PMIx, by which launchers such as srun --mpi=pmix and prterun pass
// values between the processes of a job. Programs that are built with C open PMIx's library at run
// time.
package pmix

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"gompi/internal/boot/pmi"
	"gompi/internal/env"
)

// Variables of a launcher: the rank, and the name of the job. The number of ranks is known after
// Init alone.
const (
	EnvRank = "PMIX_RANK"
	EnvJob  = "PMIX_NAMESPACE"
)

// Visible reports whether the variables are of a rank of a launcher that speaks PMIx, unless others
// beside them say that there is one rank. Slurm's may belong to a step in which another launcher
// runs, and others than these may be left over in an image.
func Visible(getenv func(string) string) bool {
	sizes := []string{env.OMPISize, pmi.EnvSize, "JSM_NAMESPACE_SIZE"}
	if !InStep(getenv) {
		sizes = append(sizes, env.SlurmStepSize)
	}
	return getenv(EnvRank) != "" && getenv(EnvJob) != "" &&
		!slices.ContainsFunc(sizes, func(size string) bool { return getenv(size) == "1" })
}

// InStep reports whether the launcher that speaks PMIx is not Slurm, but may run in a step of it.
// The process may be a child of a rank.
func InStep(getenv func(string) string) bool {
	job, step := getenv(EnvJob), stepOf(getenv)
	return job != "" && !strings.HasPrefix(job, "slurm.") || step != "" && getenv(env.Joined) == step
}

// stepOf names the step of Slurm, "" outside steps.
func stepOf(getenv func(string) string) string {
	if step := getenv("SLURM_STEP_ID"); step != "" {
		return getenv("SLURM_JOB_ID") + "." + step
	}
	return ""
}

// leaveToChildren removes the variables: children of this process are not this rank. Nor are they
// tasks of the step in which the launcher runs, whose variables remain: the step is noted.
func leaveToChildren() {
	if step := stepOf(os.Getenv); step != "" && InStep(os.Getenv) {
		os.Setenv(env.Joined, step)
	}
	os.Unsetenv(EnvRank)
	os.Unsetenv(EnvJob)
}

// ErrLibrary is for a program that cannot open the library.
var ErrLibrary = errors.New("PMIx's library cannot be opened")

// A Launcher is the connection of this process, a rank, to its launcher.
type Launcher struct {
	Rank, Size int // of this process
	LocalSize  int // number of ranks on this host, 0 if the launcher does not tell it
	Program    int // index among the programs of the launcher's command line
}

// answerTime bounds the launcher's answer to a goodbye or an abort.
const answerTime = 5 * time.Second

// Finalize notifies the launcher that this process ends on purpose.
func (l *Launcher) Finalize() error { return l.bounded("goodbye", finalize) }

// Abort asks the launcher to end the job.
func (l *Launcher) Abort(code int, reason string) error {
	return l.bounded("abort", func() error { return abort(code, reason) })
}

// bounded waits for a call of the library, which has no time limit of its own.
func (l *Launcher) bounded(what string, call func() error) error {
	done := make(chan error, 1)
	go func() { done <- call() }()
	select {
	case err := <-done:
		return err
	case <-time.After(answerTime):
		return fmt.Errorf("PMIx: the launcher does not answer the %s of rank %d within %v", what, l.Rank, answerTime)
	}
}
