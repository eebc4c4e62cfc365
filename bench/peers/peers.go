// Package peers knows the implementations with which gompi is compared: their installation, their
// start, and programs for them in C, C++ and Python.
package peers

import (
	"context"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"gompi/bench/internal/runner"
)

//go:embed src
var sources embed.FS

// toolLimit bounds a compiler, or a launcher's answer to --version.
const toolLimit = time.Minute

// A Bench is the place of a comparison: this machine or hosts, and the transport.
type Bench struct {
	Gompirun  string
	Venvs     string // the folder of make peers
	Python    string // with PyTorch; "": search for one
	Transport string // for gompi, "" for its own choice; with tcp, peers use TCP, too
	Hosts     *Hosts // nil: this machine

	dir   string            // of the peers' programs and their input
	built map[string]string // path of a program by its name and library
	torch *torch
}

// Open makes the folder; Close removes it.
func (b *Bench) Open() error {
	dir, err := os.MkdirTemp("", "gompi-peers-")
	if err != nil {
		return err
	}
	b.dir, b.built = filepath.Join(dir, "src"), make(map[string]string)
	return os.CopyFS(dir, sources)
}

// Close removes all that was built.
func (b *Bench) Close() error { return os.RemoveAll(filepath.Dir(b.dir)) }

// Dir returns the folder. Callers may put input files of programs there.
func (b *Bench) Dir() string { return b.dir }

// TCP reports whether all are to use TCP.
func (b *Bench) TCP() bool { return b.Transport == "tcp" }

// A Program is a benchmark in the forms that peers run, or an installed program, with its
// arguments. Peers without a form lack the program.
type Program struct {
	C         string   // name of the file
	Python    string   // name of the script
	Installed string   // path of a program linked with Debian's Open MPI
	Args      []string // for all peers
}

// Enter prepares the peers with the given names to run a program. It returns the available
// entrants, and why others are absent.
func (b *Bench) Enter(ctx context.Context, names []string, p Program) (here []runner.Entrant, absent []string) {
	for _, name := range names {
		var e runner.Entrant
		var err error
		switch {
		case slices.Contains(torchNames, name):
			e, err = b.enterTorch(ctx, name, p)
		case name == UCX:
			e, err = b.enterUCX(ctx)
		default:
			e, err = b.enterMPI(ctx, name, p)
		}
		if err != nil {
			absent = append(absent, fmt.Sprintf("%s: %v", name, err))
			continue
		}
		here = append(here, e.Called(name))
	}
	return here, absent
}

// Names returns the names of all peers.
func Names() []string {
	var names []string
	for _, l := range libraries {
		names = append(names, l.name)
	}
	return append(append(names, torchNames...), UCX)
}

// Parse parses a list of peers. others are further valid names.
func Parse(list string, others ...string) ([]string, error) {
	if list == "" {
		return nil, nil
	}
	names := strings.Split(list, ",")
	known := append(Names(), others...)
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return nil, fmt.Errorf("-peers %q: %s is named twice", list, name)
		}
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("-peers %q: %q: want some of %s", list, name, strings.Join(known, ","))
		}
	}
	return names, nil
}

// Gompi returns gompi as an entrant: gompirun with flags starts program.
func (b *Bench) Gompi(flags []string, program ...string) runner.Entrant {
	return runner.Entrant{Name: "gompi", Start: func(np int, args ...string) runner.Job {
		return runner.Job{{Args: slices.Concat([]string{b.Gompirun}, placeGompi(b, np, processors), flags, program,
			args), Env: envGompi(b, "")}}
	}}
}

func placeGompi(b *Bench, np, _ int) []string {
	place := []string{"-np", strconv.Itoa(np)}
	switch {
	case b.Hosts != nil:
		return append(place, "-hostfile", b.Hosts.File(np, withSlots), "-rsh", b.Hosts.RSH())
	case strings.HasPrefix(b.Transport, overUCX): // a host for each rank, as ranks of one host use shared memory
		return append(place, "-H", strings.Join(loopbackHosts(np), ","))
	}
	return place
}

func envGompi(b *Bench, _ string) []string {
	if b.Transport == "" {
		return nil
	}
	return []string{"GOMPI_TRANSPORT=" + b.Transport}
}

// OnGompi are the peers whose programs are built for another MPI library, and run on gompi's
// library with that binary interface.
var OnGompi = []string{"gompi-openmpi", "gompi-mpich"}

// placeMPI starts programs on gompi's MPI library.
func placeMPI(b *Bench, np, processors int) []string {
	return append(placeGompi(b, np, processors), "-mpi-lib", "gompi")
}

// A library is an implementation of MPI.
type library struct {
	name      string
	launchers []string // candidates; VENV is the folder of make peers
	compilers []string // for each launcher
	needs     string   // the command that installs it
	// flags for this many ranks, each bound to a core if there is one for each
	place   func(b *Bench, np, processors int) []string
	env     func(b *Bench, venv string) []string // for launcher and compiler
	try     []string                             // arguments of a trial run, if installed does not mean usable
	only    string                               // its only program, "" for all
	flags   []string                             // of the compiler, before the program
	link    []string                             // and after the program; SRC is the folder of the programs
	lacks   []string                             // operations
	openMPI bool                                 // it has the binary interface of Debian's Open MPI
}

var libraries = []library{
	{
		name: OnGompi[0], needs: "apt-get install libopenmpi-dev; make build libmpi",
		launchers: []string{"GOMPIRUN"}, compilers: []string{"mpicc.openmpi"},
		place: placeMPI, env: envGompi, openMPI: true,
	},
	{
		name: OnGompi[1], needs: "apt-get install libmpich-dev; make build libmpi",
		launchers: []string{"GOMPIRUN"}, compilers: []string{"mpicc.mpich"},
		place: placeMPI, env: envGompi,
	},
	{
		name: "openmpi", needs: "make peers",
		launchers: []string{"VENV/openmpi/bin/mpirun"}, compilers: []string{"VENV/openmpi/bin/mpicc"},
		place: placeOpenMPI, env: envOpenMPI, openMPI: true,
	},
	{
		name: "openmpi-debian", needs: "apt-get install openmpi-bin libopenmpi-dev",
		launchers: []string{"mpirun.openmpi"}, compilers: []string{"mpicc.openmpi"},
		place: placeOpenMPI, env: envOpenMPI, openMPI: true,
	},
	{
		name: "openmpi-ob1", needs: "make peers",
		launchers: []string{"VENV/openmpi/bin/mpirun", "mpirun.openmpi"},
		compilers: []string{"VENV/openmpi/bin/mpicc", "mpicc.openmpi"},
		place:     placeOpenMPI, env: envOB1, openMPI: true,
	},
	{
		name: "mpich", needs: "make peers",
		launchers: []string{"VENV/mpich/bin/mpirun"}, compilers: []string{"VENV/mpich/bin/mpicc"},
		place: placeHydra, env: envMPICH5,
	},
	{
		name: "mpich-debian", needs: "apt-get install mpich libmpich-dev",
		launchers: []string{"mpirun.mpich"}, compilers: []string{"mpicc.mpich"},
		place: placeHydra, env: envMPICH4,
	},
	{
		name: "impi", needs: "make peers",
		launchers: []string{"VENV/impi/bin/mpirun"}, compilers: []string{"VENV/impi/bin/mpigcc"},
		place: placeIntel, env: envIntel,
	},
	{
		name: "oneccl", needs: "make peers",
		launchers: []string{"VENV/impi/bin/mpirun"}, compilers: []string{"VENV/impi/bin/mpigxx"},
		place: placeIntel, env: envIntel,
		only: "mpibench.c", flags: []string{"-DONECCL", "-x", "c"},
		link: []string{"-x", "c++", "SRC/oneccl.cpp", "-x", "none", "-lccl"},
		lacks: []string{"latency", "irecv", "vector", "sendrecv", "iprobe", "iprobe_found", "iprobe_recv", "gap1ms",
			"gap10ms", "halo", "bw", "put", "get", "store", "fetch_and_op", "iallreduce", "gather", "scatter", "scan"},
	},
	{
		name: "srun", needs: "a Slurm that runs, and apt-get install libmpich-dev",
		launchers: []string{"srun"}, compilers: []string{"mpicc.mpich"},
		place: placeSlurm, env: noEnv,
		try: []string{"--immediate=5", "-n1", "true"},
	},
}

func placeOpenMPI(b *Bench, np, processors int) []string {
	flags := []string{"--allow-run-as-root", "-np", strconv.Itoa(np)}
	switch {
	case b.Hosts != nil:
		return append(flags, "--hostfile", b.Hosts.File(np, withSlots), "--bind-to", "none")
	case np > processors: // Open MPI yields by itself then; explicit, so that reports show it
		return append(flags, "--map-by", "slot:OVERSUBSCRIBE", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1")
	}
	return append(flags, "--bind-to", "core")
}

// envOpenMPI has the settings of Open MPI 4 and of Open MPI 5, whose launcher is PRRTE. With hosts,
// which may be namespaces of one machine, ranks yield the processors that they share.
func envOpenMPI(b *Bench, _ string) []string {
	// else it waits two seconds for a service that is installed but does not run
	env := []string{"PMIX_MCA_psec=native"}
	switch {
	case b.Hosts != nil:
		return append(env, "OMPI_MCA_pml=ob1", "OMPI_MCA_btl=tcp,self,vader", "OMPI_MCA_mpi_yield_when_idle=1",
			"OMPI_MCA_btl_tcp_if_include="+b.Hosts.Subnet, "OMPI_MCA_oob_tcp_if_include="+b.Hosts.Subnet,
			"PRTE_MCA_prte_if_include="+b.Hosts.Subnet,
			"OMPI_MCA_plm_rsh_agent="+b.Hosts.Login(), "PRTE_MCA_plm_ssh_agent="+b.Hosts.Login())
	case b.TCP():
		return append(env, "OMPI_MCA_pml=ob1", "OMPI_MCA_btl=tcp,self")
	}
	return env
}

// envOB1 selects the ob1 messaging layer. The default one searches long for networks.
func envOB1(b *Bench, venv string) []string { return append(envOpenMPI(b, venv), "OMPI_MCA_pml=ob1") }

func placeHydra(b *Bench, np, processors int) []string {
	flags := []string{"-np", strconv.Itoa(np)}
	switch {
	case b.Hosts != nil:
		return append(flags, "-f", b.Hosts.File(np, withColon), "-launcher", "ssh", "-launcher-exec", b.Hosts.Login(),
			"-localhost", b.Hosts.Here)
	case np > processors:
		return flags
	}
	return append(flags, "-bind-to", "core")
}

// envMPICH4: MPIR_CVAR_NOLOCAL alone would leave UCX's shared memory, which also works between
// namespaces.
func envMPICH4(b *Bench, _ string) []string {
	switch {
	case b.Hosts != nil:
		return []string{"UCX_TLS=tcp,self"}
	case b.TCP():
		return []string{"MPIR_CVAR_NOLOCAL=1", "UCX_TLS=tcp,self", "UCX_NET_DEVICES=lo"}
	}
	return nil
}

func envMPICH5(b *Bench, _ string) []string {
	switch {
	case b.Hosts != nil:
		return []string{"MPIR_CVAR_CH4_NETMOD=ofi", "FI_PROVIDER=tcp"}
	case b.TCP():
		return []string{"MPIR_CVAR_NOLOCAL=1", "MPIR_CVAR_CH4_NETMOD=ofi", "FI_PROVIDER=tcp"}
	}
	return nil
}

// placeIntel: Intel MPI binds ranks to cores by default.
func placeIntel(b *Bench, np, _ int) []string { return placeHydra(b, np, 0) }

// envIntel: with I_MPI_COLL_INTRANODE unset, collectives use shared memory on any fabric.
func envIntel(b *Bench, venv string) []string {
	env := []string{"I_MPI_ROOT=" + venv, "CCL_ROOT=" + venv, "CCL_LOG_LEVEL=error",
		"PATH=" + filepath.Join(venv, "bin") + ":" + os.Getenv("PATH"), "LD_LIBRARY_PATH=" + filepath.Join(venv, "lib")}
	if b.TCP() || b.Hosts != nil {
		return append(env, "I_MPI_FABRICS=ofi", "FI_PROVIDER=tcp", "I_MPI_COLL_INTRANODE=pt2pt")
	}
	return env
}

// placeSlurm starts programs built by MPICH's compiler.
func placeSlurm(b *Bench, np, _ int) []string {
	flags := []string{"--mpi=pmi2", "--overcommit", "-n", strconv.Itoa(np)}
	if b.Hosts != nil {
		flags = append(flags, "-N", strconv.Itoa(len(b.Hosts.Names)))
	}
	return flags
}

func noEnv(*Bench, string) []string { return nil }

// processors is the number of this machine's processors.
var processors = runtime.NumCPU()
