package mpirun

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"gompi/internal/cli"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/pattern"
)

// outputs says where what ranks write goes, and how it looks.
type outputs struct {
	tag, stamp bool
	merge      bool   // stderr of a rank goes where its stdout goes
	prefix     string // pattern of what each line begins with
	outputDir  string // of files of each rank
	noJobID    bool   // directly in outputDir, not in a folder of the job
	noCopy     bool   // to the files alone
	outfile    string // pattern of the file that takes stdout
	errfile    string
}

// outputFlags declares the flags about output. The function it returns applies
// their values.
func (o *options) outputFlags(set *cli.Set) func() error {
	u := &o.outputs
	set.BoolVar(&u.tag, "tag-output", false, "")
	set.BoolVar(&u.stamp, "timestamp-output", false, "")
	set.BoolVar(&u.merge, "merge-stderr-to-stdout", false, "")
	set.StringVar(&u.prefix, "prepend-pattern", "", "")
	set.StringVar(&u.outputDir, "output-filename", "", "")
	set.StringVar(&u.outfile, "outfile-pattern", "", "")
	set.StringVar(&u.errfile, "errfile-pattern", "", "")
	return func() error {
		for flag, p := range map[string]string{"prepend-pattern": u.prefix, "outfile-pattern": u.outfile, "errfile-pattern": u.errfile} {
			if err := pattern.Check(p); err != nil {
				return fmt.Errorf("-%s %q: %w", flag, p, err)
			}
		}
		if u.outputDir != "" && u.outfile+u.errfile != "" {
			return errors.New("-output-filename, and -outfile-pattern or -errfile-pattern: want one of them")
		}
		return u.setDir()
	}
}

// setDir applies what may follow the folder of -output-filename: ":nocopy",
// ":nojobid", or both.
func (u *outputs) setDir() error {
	dir, how, found := strings.Cut(u.outputDir, ":")
	if !found {
		return nil
	}
	for word := range strings.SplitSeq(how, ",") {
		switch strings.ToLower(word) {
		case "nocopy":
			u.noCopy = true
		case "nojobid":
			u.noJobID = true
		default:
			return fmt.Errorf("-output-filename %q: %q: want nocopy, nojobid or both after the colon", u.outputDir, word)
		}
	}
	if dir == "" {
		return errors.New("-output-filename: want a folder before the colon")
	}
	u.outputDir = dir
	return nil
}

// setFiles tells the output which files there are to be, and what patterns tell of
// the ranks. It makes the folder of the ranks' files.
func (j *job) setFiles() error {
	for _, r := range j.plan.Ranks {
		j.out.Ranks = append(j.out.Ranks, pattern.Rank{Rank: r.Rank, Host: j.plan.Hosts[r.Node].Name, Node: r.Node})
	}
	j.out.Files.Patterns = map[ctl.Stream]string{ctl.Stdout: j.outfile, ctl.Stderr: j.errfile}
	if j.outputDir == "" || j.doNotLaunch {
		return nil
	}
	dir := filepath.Join(j.outputDir, j.id)
	if j.noJobID {
		dir = j.outputDir
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("-output-filename: %w", err)
	}
	j.verbosef("output is in %s", dir)
	j.out.Files.Dir, j.out.Files.Only = dir, j.noCopy
	return nil
}
