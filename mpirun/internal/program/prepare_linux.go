package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"gompi/mpirun/internal/cmdline"
	"gompi/mpirun/internal/ctl"
)

// A Preparation gets this host ready for the ranks of a launch: environment, programs, and files
// to be fetched. That reads file systems, which may be slow, so the agent does so in the
// background.
type Preparation struct {
	Programs []*Program // of the launch; nil if no rank here runs it
	Warnings []string   // for the user

	launch *ctl.Launch
	intake intake
	vars   []string // of ranks, before the variables of their programs
	mpi    string   // the folder of gompi's MPI libraries, "" if there is none
	dir    string   // working directory of programs that name none; "": the agent's
}

// Begin sets the environment of the ranks of l. Then it continues like Take.
func (p *Preparation) Begin(l *ctl.Launch) (want *ctl.Want, rank int, err error) {
	p.launch = l
	p.setEnvironment()
	p.intake.Find(l, p.dir)
	if p.mpi = MPIFolder(l.MPIFolder); p.mpi == "" {
		p.intake.FindMPI(l)
	}
	return p.next()
}

// Take stores a piece of a fetched file. It returns the next request, nil when all programs have
// been found. On failure it returns an error and the rank that cannot start.
func (p *Preparation) Take(data []byte) (want *ctl.Want, rank int, err error) {
	if want, err = p.intake.Take(data); want != nil || err != nil {
		return want, p.launch.Ranks[0].Rank, err
	}
	return p.next()
}

func (p *Preparation) next() (want *ctl.Want, rank int, err error) {
	if want, err = p.intake.Next(); want != nil || err != nil {
		return want, p.launch.Ranks[0].Rank, err
	}
	rank, err = p.lookUpAll()
	return nil, rank, err
}

// Abandon removes an incomplete file.
func (p *Preparation) Abandon() { p.intake.Abandon() }

// Files returns the programs of this host's ranks, their MPI library, and this program.
func (p *Preparation) Files() []string {
	var files []string
	if own, err := os.Executable(); err == nil {
		files = append(files, own)
	}
	if p.mpi != "" {
		files = append(files, filepath.Join(p.mpi, mpiCore))
	}
	for _, prog := range p.Programs {
		if prog != nil {
			files = append(files, prog.Path)
		}
	}
	return files
}

// lookUpAll finds the programs of this host's ranks. The results are a rank whose program is not
// found, and the error.
func (p *Preparation) lookUpAll() (int, error) {
	p.Programs = make([]*Program, len(p.launch.Programs))
	p.mpi = cmp.Or(p.mpi, p.intake.MPIFolder(p.launch))
	for _, r := range p.launch.Ranks {
		if p.Programs[r.Program] != nil {
			continue
		}
		var err error
		if p.Programs[r.Program], err = p.lookUp(&p.launch.Programs[r.Program], p.intake.Path(r.Program)); err != nil {
			return r.Rank, err
		}
	}
	return 0, nil
}

// lookUp finds a program on this host. path is its place in the cache, "" without preloading.
func (p *Preparation) lookUp(what *ctl.Program, path string) (*Program, error) {
	if len(what.Argv) == 0 || what.Argv[0] == "" {
		return nil, errors.New("no program to run")
	}
	prog := &Program{Path: path, Argv: what.Argv, Dir: what.Wdir, Env: MergeEnv(p.vars, what.Env)}
	if what.Wdir == "" {
		prog.Dir = p.dir
	} else if !isDir(what.Wdir) {
		return nil, fmt.Errorf("working directory %q: no such directory", what.Wdir)
	}
	if prog.Dir != "" {
		prog.Env = MergeEnv(prog.Env, []string{"PWD=" + prog.Dir})
	}
	if path == "" {
		var err error
		dirs, _ := EnvValue(prog.Env, "PATH")
		if prog.Path, err = Find(what.Argv[0], prog.Dir, dirs); err != nil {
			return nil, err
		}
		prog.Touch()
		if err := prog.missingScript(); err != nil {
			return nil, err
		}
	}
	return prog, prog.chooseMPI(cmdline.MPILib(p.launch.MPILib), p.mpi, p.launch.Size)
}

// setEnvironment sets the environment and working directory of the ranks: the launcher's, on
// another host only the parts with a meaning there.
func (p *Preparation) setEnvironment() {
	if p.launch.Nodes > 1 {
		if err := reachable(p.launch.MasterAddr); err != nil {
			p.warn("programs that meet at MASTER_ADDR=%s, as those of torch do, do not find it from here: %v: want an address by which this host reaches that of rank 0 in -master-addr", p.launch.MasterAddr, err)
		}
	}
	p.vars, p.dir = Surroundings(p.launch.Env, p.launch.Dir, p.launch.Remote)
	starts := func(r ctl.Rank) bool { return p.launch.Programs[r.Program].Wdir == "" }
	if p.dir != "" && p.dir != p.launch.Dir && slices.ContainsFunc(p.launch.Ranks, starts) {
		p.warn("there is no directory %s here: its ranks start in %s", p.launch.Dir, p.dir)
	}
}

// Surroundings returns the environment and the working directory of this host's ranks by the
// launcher's. On the launcher's host the directory is "", the agent's.
func Surroundings(launched []string, dir string, remote bool) (vars []string, there string) {
	vars = hostEnv(launched, os.Environ(), remote, isDir)
	home, _ := EnvValue(vars, "HOME")
	switch {
	case !remote:
		return vars, ""
	case isDir(dir):
		return vars, dir
	case isDir(home):
		return vars, home
	}
	return vars, "/"
}

func (p *Preparation) warn(format string, args ...any) {
	p.Warnings = append(p.Warnings, fmt.Sprintf(format, args...))
}

func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

// lookUpTime bounds the time of a name server to resolve MASTER_ADDR.
const lookUpTime = 2 * time.Second

// reachable returns the error of this host's route to address, which may be a name.
func reachable(address string) error {
	ctx, cancel := context.WithTimeout(context.Background(), lookUpTime)
	defer cancel()
	c, err := (&net.Dialer{}).DialContext(ctx, "udp", net.JoinHostPort(address, "9")) // sends nothing
	if err != nil {
		return err
	}
	return c.Close()
}
