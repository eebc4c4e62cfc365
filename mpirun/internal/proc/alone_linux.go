package proc

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gompi/internal/env"
	"gompi/mpirun/internal/program"
)

// openMPIMark begins the name of a file by which MPI_Init of Open MPI, versions 2 to 5, tests
// shared memory. It unlinks the file and never closes it.
const openMPIMark = "/open_mpi."

// A Lone is a rank whose program is a job of one, as Alone explains.
type Lone struct {
	Rank, PID int
	Why       string
	Sure      bool
}

// FindAlone looks at silent ranks, by process number, and their descendants, but not at other
// ranks. It may block: the kernel may wait for the memory of a process.
func FindAlone(silent map[int]int, others map[int]bool, jobID string) (found []Lone) {
	below, err := Below(func(pid int) bool { return others[pid] })
	if err != nil {
		return nil
	}
	known := map[int]bool{}
	for _, p := range below { // parents come first
		rank, ofRank := silent[p.PID]
		if !ofRank {
			if rank, ofRank = silent[p.Parent]; !ofRank {
				continue // its parent has ended
			}
			silent[p.PID] = rank
		}
		if known[rank] {
			continue
		}
		if why, sure := Alone(p.PID, jobID); why != "" {
			known[rank] = true
			found = append(found, Lone{rank, p.PID, why, sure})
		}
	}
	return found
}

// Alone explains why the MPI program of a process is a job of one, "" if that is not so, or
// cannot be seen. The process was started by a rank of the job with this id. sure is false if the
// processes may meet in another way, by PyTorch.
//
// A loaded library does not count before MPI_Init, because PyTorch may be linked with an unused
// library.
func Alone(pid int, jobID string) (why string, sure bool) {
	dir := dirOf(pid)
	vars, ok := variables(dir)
	if !ok || slices.ContainsFunc(vars, mayBeAlone) {
		return "", false
	}
	job := slices.IndexFunc(vars, func(kv string) bool { return strings.HasPrefix(kv, env.JobID+"=") })
	if job >= 0 && vars[job] != env.JobID+"="+jobID {
		return "", false // a rank of another job, started by this one
	}
	lost, begun := job < 0, beganOpenMPI(dir)
	if !lost && !begun {
		return "", false // without a look at the maps, which may be long
	}
	maps, _ := os.ReadFile(dir + "maps")
	sure = !bytes.Contains(maps, []byte("/libtorch"))
	if lib := openMPI(dir, maps); begun && lib != "" {
		return fmt.Sprintf("it uses Open MPI (%s), whose ranks meet over PMIx, which gompirun does not speak. "+
			"Start it with Open MPI's mpirun, or have it find gompi's libmpi.so.40 first (docs/mpi.md), "+
			"or MPICH's library, whose ranks meet over PMI; of mpi4py: pip install mpich, or -x MPI4PY_LIBMPI=FILE", lib), sure
	}
	if lib := mapped(maps, program.IsMPICH, program.IsABI, isOwnMPI); lost && lib != "" {
		return fmt.Sprintf("it uses MPI (%s), and the variables by which its ranks meet have been removed by what started it. "+
			"Let those through that begin with PMI_ and GOMPI_", lib), sure
	}
	return "", false
}

// mayBeAlone reports whether a variable marks a rank of Open MPI's mpirun, or a process that is
// alone on purpose.
func mayBeAlone(kv string) bool {
	return strings.HasPrefix(kv, "PMIX_RANK=") || kv == env.Boot+"=alone"
}

// variables returns the initial environment of a process, false if reading fails: the process has
// ended, or is another user's, or has written its title there.
func variables(dir string) ([]string, bool) {
	environ, err := os.ReadFile(dir + "environ")
	if err != nil {
		return nil, false
	}
	if len(environ) == 0 {
		return nil, true
	}
	vars := strings.Split(strings.TrimSuffix(string(environ), "\x00"), "\x00")
	return vars, !slices.ContainsFunc(vars, func(kv string) bool { return !strings.Contains(kv, "=") })
}

// openMPI returns the Open MPI in a process that beganOpenMPI, "" for Open MPI's own programs,
// such as mpirun: none of them contains names of MPI's communicators.
func openMPI(dir string, maps []byte) string {
	if lib := mapped(maps, program.IsOpenMPI, program.IsABI); lib != "" {
		return lib
	}
	if exe, _ := os.ReadFile(dir + "exe"); bytes.Contains(exe, worldName) {
		return "linked statically"
	}
	return ""
}

// worldName is in every MPI library, for error messages and MPI_Comm_get_name.
var worldName = []byte("MPI_COMM_WORLD")

// beganOpenMPI reports whether a process has called MPI_Init of Open MPI, or is one of Open MPI's
// own programs.
func beganOpenMPI(dir string) bool {
	fds, _ := os.ReadDir(dir + "fd")
	return slices.ContainsFunc(fds, func(fd os.DirEntry) bool {
		file, _ := os.Readlink(dir + "fd/" + fd.Name())
		return strings.Contains(file, openMPIMark)
	})
}

// isOwnMPI reports whether a library is the core of gompi's MPI libraries, which all their names
// load.
func isOwnMPI(lib string) bool { return lib == "libgompi-mpi.so" }

// mapped returns the first library in maps that one of kinds accepts, "" if there is none.
func mapped(maps []byte, kinds ...func(file string) bool) string {
	for line := range bytes.Lines(maps) {
		at := bytes.IndexByte(line, '/')
		if at < 0 || !bytes.Contains(line, []byte(".so")) {
			continue
		}
		path := string(bytes.TrimSpace(line[at:]))
		if slices.ContainsFunc(kinds, func(is func(string) bool) bool { return is(filepath.Base(path)) }) {
			return path
		}
	}
	return ""
}
