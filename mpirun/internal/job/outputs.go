package job

import (
	"path/filepath"
	"strconv"

	"gompi/mpirun/internal/ctl"
)

// setFiles sets the files and patterns of the output, and makes the folders of the ranks' files.
func (j *Job) setFiles() error {
	j.out.Ranks = j.plan.Labels()
	j.out.Files.Patterns = map[ctl.Stream]string{ctl.Stdout: j.spec.Output.Outfile, ctl.Stderr: j.spec.Output.Errfile}
	if j.spec.Report.DoNotLaunch {
		return nil
	}
	if j.spec.Output.Dir != "" {
		dir := filepath.Join(j.spec.Output.Dir, strconv.Itoa(j.attempt.runs+1)) // as the first job of Open MPI's mpirun
		if j.spec.Output.NoJobID {
			dir = j.spec.Output.Dir
		}
		j.verbosef("output is in %s", dir)
		j.out.Files.Dir, j.out.Files.Only, j.out.Files.Merged = dir, j.spec.Output.NoCopy, j.spec.Output.Merge
	}
	_, err := during(j, "making the folders of output", func() (any, error) { return nil, j.out.MakeFolders() })
	return err
}
