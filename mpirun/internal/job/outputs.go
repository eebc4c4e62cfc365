package job

import (
	"fmt"
	"os"
	"path/filepath"

	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/pattern"
)

// setFiles sets the files and patterns of the output. It makes the folder of the ranks' files.
func (j *Job) setFiles() error {
	for _, r := range j.plan.Ranks {
		j.out.Ranks = append(j.out.Ranks, pattern.Rank{Rank: r.Rank, Host: j.plan.Hosts[r.Node].Name, Node: r.Node})
	}
	j.out.Files.Patterns = map[ctl.Stream]string{ctl.Stdout: j.spec.Output.Outfile, ctl.Stderr: j.spec.Output.Errfile}
	if j.spec.Output.Dir == "" || j.spec.Report.DoNotLaunch {
		return nil
	}
	dir := filepath.Join(j.spec.Output.Dir, j.id)
	if j.spec.Output.NoJobID {
		dir = j.spec.Output.Dir
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("-output-filename: %w", err)
	}
	j.verbosef("output is in %s", dir)
	j.out.Files.Dir, j.out.Files.Only = dir, j.spec.Output.NoCopy
	return nil
}
