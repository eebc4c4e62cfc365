// Package contest runs gompi beside other implementations: it knows how each is
// started, builds our programs for it, and measures them in turn.
package contest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Library is an implementation of MPI that may be installed here.
type Library struct {
	Name  string
	Tools []Tools                           // where to look for it, best first
	Says  string                            // what its launcher says of itself for --version
	Needs string                            // packages of Debian that have it
	Place func(np, processors int) []string // flags for so many ranks, each bound to a core if there is one for each
	Over  func(h *Hosts, np int) []string   // flags for so many ranks on other hosts
	Try   []string                          // arguments with which the launcher must succeed, if it needs more than to be installed
}

// Tools are the programs of a Library.
type Tools struct{ Launcher, Compiler string }

// A Competitor is a Library with the settings that it enters with.
type Competitor struct {
	Name      string
	Library   Library
	Flags     []string // for the launcher
	Env       []string
	Component string // of Open MPI, without which there is no such competitor
}

func openMPI() Library {
	return Library{
		Name:  "openmpi",
		Tools: []Tools{{"mpirun.openmpi", "mpicc.openmpi"}, {"mpirun", "mpicc"}},
		Says:  "open-mpi.org",
		Needs: "openmpi-bin libopenmpi-dev",
		Place: func(np, processors int) []string {
			flags := []string{"--allow-run-as-root", "-np", strconv.Itoa(np)}
			if np > processors {
				// It yields by itself then; said, so that reports show it.
				return append(flags, "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1")
			}
			return append(flags, "--bind-to", "core")
		},
		Over: func(h *Hosts, np int) []string {
			return []string{
				"--allow-run-as-root", "-np", strconv.Itoa(np), "--hostfile", h.File(np, withSlots), "--bind-to", "none",
				"--mca", "plm_rsh_agent", h.Login(), "--mca", "btl_tcp_if_include", h.Subnet, "--mca", "oob_tcp_if_include", h.Subnet,
			}
		},
	}
}

func mpich() Library {
	return Library{
		Name:  "mpich",
		Tools: []Tools{{"mpirun.mpich", "mpicc.mpich"}, {"mpirun", "mpicc"}},
		Says:  "HYDRA",
		Needs: "mpich libmpich-dev",
		Place: func(np, processors int) []string {
			flags := []string{"-np", strconv.Itoa(np)}
			if np > processors {
				return flags
			}
			return append(flags, "-bind-to", "core")
		},
		Over: func(h *Hosts, np int) []string {
			return []string{"-np", strconv.Itoa(np), "-f", h.File(np, withColon), "-launcher", "ssh", "-launcher-exec", h.Login(), "-localhost", h.Here}
		},
	}
}

// slurm starts programs that MPICH's compiler made.
func slurm() Library {
	flags := func(np int) []string { return []string{"--mpi=pmi2", "--overcommit", "-n", strconv.Itoa(np)} }
	return Library{
		Name:  "slurm",
		Tools: []Tools{{"srun", "mpicc.mpich"}},
		Says:  "slurm",
		Needs: "slurm-wlm libmpich-dev, and a Slurm that runs",
		Place: func(np, _ int) []string { return flags(np) },
		Over:  func(h *Hosts, np int) []string { return append(flags(np), "-N", strconv.Itoa(len(h.Names))) },
		Try:   []string{"--immediate=5", "-n1", "true"},
	}
}

// Competitors returns all that can be entered, each in its best setting that we know. Measured by 4
// ranks on two cores and left out: Open MPI 4.1.4 with its components sm (allreduce of 8 bytes in
// 58 us instead of 4; only bcasts up to 64 KiB are faster, and those not back to back) and adapt (8
// us), and MPICH 4.0.2 with other values of MPIR_CVAR_POLLS_BEFORE_YIELD, which loses 8 ms in
// nearly each such call whatever it says.
func Competitors() []Competitor {
	// Without it Open MPI waits two seconds for an authentication service that
	// is installed but does not run.
	quick := []string{"PMIX_MCA_psec=native"}
	return []Competitor{
		{Name: "openmpi-tcp", Library: openMPI(), Flags: []string{"--mca", "pml", "ob1", "--mca", "btl", "tcp,self"}, Env: quick},
		{Name: "openmpi", Library: openMPI(), Env: quick},
		// Collectives made for one host, in Open MPI 5.1 and later.
		{Name: "openmpi-xhc", Library: openMPI(), Flags: []string{"--mca", "coll_xhc_priority", "100"}, Env: quick, Component: "xhc"},
		{Name: "openmpi-acoll", Library: openMPI(), Flags: []string{"--mca", "coll_acoll_priority", "100"}, Env: quick, Component: "acoll"},
		// Its other messaging layer takes 200 ms of looking for networks.
		{Name: "openmpi-ob1", Library: openMPI(), Flags: []string{"--mca", "pml", "ob1"}, Env: quick},
		// NOLOCAL alone would leave UCX's shared memory.
		{Name: "mpich-tcp", Library: mpich(), Env: []string{"MPIR_CVAR_NOLOCAL=1", "UCX_TLS=tcp,self", "UCX_NET_DEVICES=lo"}},
		{Name: "mpich", Library: mpich()},
		// Between hosts that may be namespaces of one machine, whose processors they then share:
		// Open MPI yields them, which it does by itself only on a host with more ranks than slots.
		// UCX, by which MPICH exchanges messages between hosts, would use shared memory there
		// (allreduce of
		// 64 MiB between four hosts: 0.58 s, where its bytes take 0.81 on the links).
		{Name: "openmpi-hosts", Library: openMPI(), Flags: []string{"--mca", "pml", "ob1", "--mca", "btl", "tcp,self,vader", "--mca", "mpi_yield_when_idle", "1"}, Env: quick},
		{Name: "mpich-hosts", Library: mpich(), Env: []string{"UCX_TLS=tcp,self"}},
		{Name: "srun", Library: slurm()},
	}
}

// Find returns the competitors with the given names, and apart from them those names that are among
// others, which the caller knows.
func Find(names []string, others ...string) (found []Competitor, rest []string, err error) {
	all := Competitors()
	var known []string
	for _, c := range all {
		known = append(known, c.Name)
	}
	for n, name := range names {
		i := slices.Index(known, name)
		switch {
		case slices.Contains(names[:n], name):
			return nil, nil, fmt.Errorf("peer %q is named twice", name)
		case i >= 0:
			found = append(found, all[i])
		case slices.Contains(others, name):
			rest = append(rest, name)
		default:
			return nil, nil, fmt.Errorf("peer %q: want some of %s", name, strings.Join(append(known, others...), ","))
		}
	}
	return found, rest, nil
}

// An Entrant is a competitor that is ready to run one program.
type Entrant struct {
	Name    string
	Version string // of its library, if that is known

	launcher string
	place    func(np, processors int) []string
	over     func(h *Hosts, np int) []string
	flags    []string
	program  []string // with its first arguments
	env      []string
	slow     bool     // to start: it runs all operations in one go
	lacks    []string // operations
}

// Names returns the names of entrants.
func Names(entrants []Entrant) []string {
	var names []string
	for _, e := range entrants {
		names = append(names, e.Name)
	}
	return names
}

// can returns those of ops that e has.
func (e Entrant) can(ops []string) []string {
	return slices.DeleteFunc(slices.Clone(ops), func(op string) bool { return slices.Contains(e.lacks, op) })
}

// Gompi returns gompi as an Entrant: program is started by the given gompirun.
func Gompi(gompirun, program string, env ...string) Entrant {
	return Entrant{
		Name:     "gompi",
		launcher: gompirun,
		place:    func(np, _ int) []string { return []string{"-np", strconv.Itoa(np)} },
		over: func(h *Hosts, np int) []string {
			return []string{"-np", strconv.Itoa(np), "-hostfile", h.File(np, withSlots), "-rsh", h.RSH()}
		},
		program: []string{program},
		env:     env,
	}
}

// String names the entrant and its version.
func (e Entrant) String() string { return strings.TrimSpace(e.Name + " " + e.Version) }

// Command returns how to run the program with args as np ranks on a machine
// with so many processors.
func (e Entrant) Command(np, processors int, args ...string) Command {
	all := append([]string{e.launcher}, e.place(np, processors)...)
	return Command{Args: slices.Concat(all, e.flags, e.program, args), Env: e.env}
}

// Over returns how to run the program with args as np ranks on other hosts.
func (e Entrant) Over(h *Hosts, np int, args ...string) Command {
	all := append([]string{e.launcher}, e.over(h, np)...)
	return Command{Args: slices.Concat(all, e.flags, e.program, args), Env: e.env}
}
