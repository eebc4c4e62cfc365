// Command suite builds and runs MPICH's own tests (test/mpi of its source) with gompi's faces, and
// compares which lines of their lists pass with a list of ours. Nothing of MPICH is in this
// repository: .ci/mpi-suite fetches it.
//
//	suite -source test/mpi -work DIR -known mpich-lines.txt -gompirun bin/gompirun
//
// A line passes by the rules of MPICH's runtests: the program prints "No Errors" and nothing else,
// and ends with 0; or, where the line says so, the program ends with another status. Programs that are newer
// than their sources are not built again.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"
)

// directories are all directories of the suite in C and Fortran, except part and the directories
// whose tests start processes.
const directories = "attr,ckpoint,coll,comm,datatype,errhan,errors,errors/faults,group,impls/mpich,impls/mpich/threads," +
	"info,init,io,mpi_t,pt2pt,rma,threads,topo,f77,f90,f08"

// A suite holds the values of the flags.
type suite struct {
	source, work, known string
	gompirun            string
	faces               []string // by the names of their MPIs
	jobs                int
	limit               time.Duration
	only                *regexp.Regexp
	again               bool
	every               int
}

func main() {
	var s suite
	dirs := flag.String("dirs", directories, "the directories whose lists are run")
	only := flag.String("only", "", "run the lines that match this regular expression")
	flag.StringVar(&s.source, "source", "", "MPICH's test/mpi")
	flag.StringVar(&s.work, "work", "", "the folder for programs and outcomes")
	flag.StringVar(&s.known, "known", "", "the list of lines that do not pass")
	flag.StringVar(&s.gompirun, "gompirun", "bin/gompirun", "the launcher, beside which lib has the faces")
	faces := flag.String("faces", "openmpi,mpich,abi",
		"the MPIs for which programs are built, by mpicc.NAME, and abi, by gompicc")
	flag.IntVar(&s.jobs, "jobs", runtime.NumCPU(), "how many programs are built or run at once")
	flag.DurationVar(&s.limit, "limit", 3*time.Minute, "how long a line may run, if its list does not say")
	flag.BoolVar(&s.again, "again", false, "run only the lines that did not pass last time")
	flag.IntVar(&s.every, "every", 1, "of the lines that are to pass, run only every so many-th, and those that have failed once")
	flag.Parse()
	s.faces = strings.Split(*faces, ",")
	s.only = regexp.MustCompile(*only)
	if err := s.run(strings.Split(*dirs, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
		os.Exit(1)
	}
}

func (s *suite) run(dirs []string) error {
	lines, err := s.readLines(dirs)
	if err != nil {
		return err
	}
	known, err := readKnown(s.known)
	if err != nil {
		return err
	}
	past, err := readOutcomes(s.table())
	if err != nil {
		return err
	}
	todo := s.choose(lines, past, known)
	missing := s.build(todo)
	for _, o := range s.runAll(todo, missing) {
		past[o.key()] = o
	}
	if err := writeOutcomes(s.table(), past); err != nil {
		return err
	}
	summarize(os.Stdout, todo, past)
	return compare(todo, past, known)
}

// choose returns the runs that the flags select from lines.
func (s *suite) choose(lines []line, past map[string]outcome, known knownLines) (todo []run) {
	for _, face := range s.faces {
		for _, l := range lines {
			r := run{face: face, line: l}
			if r.limit == 0 && known.why(r) != "" {
				r.limit = limitOfKnown
			}
			if language(l.dir) != "" && !hasFortran(face) {
				continue
			}
			if s.only.MatchString(r.key()) && !(s.again && past[r.key()].verdict == passed) {
				todo = append(todo, r)
			}
		}
	}
	if s.every > 1 {
		return crossSection(todo, s.every, known)
	}
	return todo
}

// limitOfKnown is the time limit of a line that is known to fail: a hanging line would take
// minutes.
const limitOfKnown = 10 * time.Second

func (s *suite) table() string { return filepath.Join(s.work, "outcomes.tsv") }
