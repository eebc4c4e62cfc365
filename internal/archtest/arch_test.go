// Package archtest holds the import rules of the house: who may know of whom.
package archtest

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// A rule lists the imports from this module that packages below one path may have: the packages
// below the given paths, and themselves. "comm/." is package comm alone.
type rule struct {
	pkg string
	may []string
}

// words are packages of types and numbers that every other package may import, but none of them
// another.
var words = []string{"internal/mem", "internal/world", "internal/calls"}

// rules are tried from the top; the first that fits a package is its rule.
var rules = []rule{
	{"internal/mem", nil},
	{"internal/world", nil},
	{"internal/calls", nil},
	{"internal/fifo", nil},
	{"internal/atomicfile", nil},
	{"internal/env", nil},
	{"internal/version", nil},
	{"internal/cli", []string{"internal/version"}},
	{"internal/poll", nil},
	{"internal/machine", nil},
	{"internal/ways", nil},
	{"internal/sockets", nil},
	{"internal/seal", nil},
	{"internal/stress", nil},
	{"internal/ci", nil},
	{"internal/guest", nil}, // of libraries for C alone
	{"internal/wheel", []string{"internal/version"}},
	{"internal/seg", []string{"internal/machine"}},
	{"internal/timeline", nil},
	{"internal/stats", []string{"internal/seg"}},
	{"internal/boot", []string{"internal/env", "internal/seg", "internal/sockets", "internal/seal"}},
	{"transport", []string{"internal/sockets", "internal/machine", "internal/ways", "internal/fifo", "internal/poll", "internal/seal",
		"internal/env"}},
	{"internal/core/match", nil},
	// not the forms of messages and collectives
	{"internal/core/lease", []string{"internal/core/peers", "internal/core/shmsync", "transport/."}},
	{"internal/core/progress", nil}, // not even transport: it polls whatever there is
	{"internal/core/call", nil},
	{"internal/core/path", []string{"internal/core/call"}}, // pure: who chooses does nothing else
	// not messages
	{"internal/core/network", []string{"internal/machine", "internal/core/path", "internal/core/progress", "transport",
		"internal/boot", "internal/seg", "internal/env", "internal/poll"}},
	{"internal/core/layout", nil},
	{"mpi/internal/typemap", []string{"internal/core/layout"}}, // not messages
	{"mpi/internal/abi", []string{"mpi/internal/typemap"}},
	{"mpi/internal/errs", []string{"internal/core/.", "internal/core/call", "internal/seg", "mpi/internal/abi",
		"mpi/internal/typemap"}},
	{"mpi/internal/infos", []string{"mpi/internal/abi", "mpi/internal/errs"}},
	// not their objects
	{"mpi/internal/attrs", []string{"mpi/internal/abi", "mpi/internal/errs"}},
	// parts of datatypes that C may know
	{"mpi/internal/dtypes", []string{"mpi/internal/abi", "mpi/internal/errs", "mpi/internal/attrs",
		"mpi/internal/typemap", "internal/core/layout", "internal/core/lease", "internal/core/call"}},
	// parts of messages that C may know
	{"mpi/internal/comms", []string{"internal/core/.", "internal/core/lease", "internal/core/call", "mpi/internal/abi",
		"mpi/internal/typemap", "mpi/internal/dtypes", "mpi/internal/errs", "mpi/internal/infos", "mpi/internal/attrs",
		"internal/core/topology"}},
	{"mpi/internal/topologies", []string{"internal/core/.", "internal/core/call", "internal/core/topology",
		"mpi/internal/abi",
		"mpi/internal/errs", "mpi/internal/infos", "mpi/internal/comms"}},
	{"mpi/internal/p2p", []string{"internal/core/.", "internal/core/lease", "mpi/internal/abi", "mpi/internal/errs",
		"mpi/internal/dtypes", "mpi/internal/comms"}},
	{"mpi/internal/collective", []string{"internal/core/.", "internal/core/call", "mpi/internal/abi",
		"mpi/internal/errs", "mpi/internal/infos", "mpi/internal/typemap", "mpi/internal/dtypes",
		"mpi/internal/comms", "mpi/internal/p2p"}},
	{"mpi/internal/windows", []string{"internal/core/.", "internal/core/rma", "internal/core/lease", "mpi/internal/abi",
		"mpi/internal/errs", "mpi/internal/infos", "mpi/internal/attrs", "mpi/internal/typemap", "mpi/internal/dtypes",
		"mpi/internal/comms", "mpi/internal/p2p"}},
	{"mpi/internal/files", []string{"internal/core/.", "internal/core/layout", "mpi/internal/abi",
		"mpi/internal/typemap", "mpi/internal/errs", "mpi/internal/infos", "mpi/internal/dtypes", "mpi/internal/comms",
		"mpi/internal/p2p", "internal/core/call"}},
	{"mpi/internal", nil}, // not comm: the packages below are over it
	{"internal/core/coll", []string{"internal/core/call", "internal/core/path"}},
	{"internal/core/hier", []string{"internal/core/call", "internal/core/path", "internal/core/coll",
		"internal/core/shmcoll"}},
	// not whose messages it moves
	{"internal/core/payload", []string{"internal/core/peers", "internal/ways", "transport", "internal/fifo"}},
	{"internal/core/peers", []string{"transport"}}, // not the purpose of frames
	{"internal/core/record", []string{"internal/core/progress", "internal/seg"}},
	// not the operations that it ends
	{"internal/core/liveness", []string{"internal/core/peers", "internal/core/record", "internal/core/progress",
		"internal/core/call", "transport", "internal/fifo", "internal/boot", "internal/seg"}},
	// not collectives
	{"internal/core/message", []string{"internal/core/peers", "internal/core/lease", "internal/core/payload",
		"internal/core/liveness", "internal/core/record", "internal/core/match", "internal/core/progress", "transport",
		"internal/boot", "internal/seg"}},
	{"internal/core/round", []string{"internal/core/message", "internal/core/lease", "internal/core/payload",
		"internal/core/peers", "internal/core/liveness", "internal/core/record", "internal/core/progress",
		"internal/core/call", "internal/core/coll", "internal/core/shmsync", "transport", "internal/fifo",
		"internal/seg"}},
	{"internal/core/shmsync/shmsynctest", []string{"internal/core/shmsync", "internal/stress"}},
	{"internal/core/shmsync", nil}, // not even collectives: it knows steps
	{"internal/core/shmcoll", []string{"internal/core/call", "internal/core/path", "internal/core/coll", "internal/ways",
		"internal/core/shmsync", "internal/seg"}},
	{"internal/core/exec", []string{"internal/core/call", "internal/core/path", "internal/core/coll",
		"internal/core/hier", "internal/core/shmcoll", "internal/core/round", "internal/core/message",
		"internal/core/liveness", "internal/core/progress", "internal/fifo"}},
	{"comm/topology", []string{"comm/.", "internal/core/.", "internal/core/topology"}},
	{"internal/core/rma", []string{"internal/core/.", "internal/core/lease", "internal/core/layout",
		"internal/core/memory", "internal/core/call"}},
	// not communicators
	{"internal/core/memory", []string{"internal/core/message", "internal/core/peers", "internal/core/shmsync",
		"internal/core/layout", "internal/core/path", "internal/boot", "internal/seg", "transport"}},
	{"internal/core/topology", []string{"internal/core/."}},
	{"comm/window", []string{"comm/.", "internal/core/.", "internal/core/rma"}},
	// tests alone
	{"comm/internal/randprog", nil},
	// no transport: its time is virtual
	{"comm/sim", []string{"internal/core/call", "internal/core/path", "internal/core/coll", "internal/core/hier"}},
	{"comm/commtest", []string{"comm/.", "internal/core/.", "internal/core/network", "transport", "internal/boot",
		"internal/seg"}},
	{"comm/ddp/sampler", nil}, // computes alone
	{"comm/ddp/compress", []string{"comm"}},
	{"comm/ddp", []string{"comm", "internal/atomicfile", "internal/timeline"}},
	{"comm/gompi_torch/libgompi", []string{"internal/core/.", "internal/core/call", "internal/version", "internal/boot",
		"internal/env", "internal/sockets", "internal/guest"}},
	{"mpi/libmpi/twins", nil},
	{"mpi/libmpi", []string{"mpi/internal", "internal/boot", "internal/env", "internal/guest"}},
	{"internal/core", []string{"internal/stats", "internal/boot", "internal/seg",
		"internal/env", "internal/machine"}},
	{"comm", []string{"internal/core", "internal/version"}}, // Go's face
	{"cudaops/topo/gompi-topo", []string{"cudaops/topo", "internal/cli"}},
	{"cudaops/topo", nil},
	{"cudaops/cudatest", []string{"internal/env", "internal/stress"}},
	{"cudaops", []string{"internal/env"}}, // not comm: they meet in mem.Buffer and mem.Space
	{"hostfile", nil},
	{"mpirun/internal/plan", []string{"hostfile", "internal/cli", "internal/seg"}}, // of seg how many ranks a host has
	{"mpirun/internal/inventory", []string{"mpirun/internal/ctl", "mpirun/internal/link", "mpirun/internal/cmdline",
		"mpirun/internal/program", "mpirun/internal/plan", "hostfile", "internal/env", "internal/sockets",
		"cudaops/topo"}},
	{"mpirun/internal/cmdline", []string{"hostfile", "internal/cli", "internal/env", "mpirun/internal/plan"}},
	{"mpirun/internal/manual/share", []string{"mpirun/internal/manual"}},
	{"mpirun/internal/manual", []string{"internal/cli", "internal/version", "mpirun/internal/cmdline"}},
	{"mpirun/internal/stdio", nil},
	{"mpirun/internal/table", nil},
	// The job reaches agents, this process and the user through its arguments: it knows of link the
	// events.
	{"mpirun/internal/failure", []string{"internal/boot/wire", "internal/cli", "mpirun/internal/ctl",
		"mpirun/internal/plan"}},
	{"mpirun/internal/job", []string{"mpirun/internal/link", "mpirun/internal/failure", "mpirun/internal/monitor",
		"mpirun/internal/stall", "mpirun/internal/output", "mpirun/internal/plan",
		"mpirun/internal/program", "mpirun/internal/inventory", "mpirun/internal/cmdline",
		"mpirun/internal/ctl",
		"mpirun/internal/report", "hostfile", "internal/boot", "internal/env", "cudaops/topo"}},
	// not how figures came
	{"mpirun/internal/report", []string{"internal/stats", "internal/timeline", "mpirun/internal/cmdline", "mpirun/internal/table"}},
	{"mpirun/internal/link", []string{"mpirun/internal/stdio", "mpirun/internal/remote", "mpirun/internal/ctl",
		"internal/boot/wire", "hostfile"}},
	{"mpirun/internal/stall", []string{"mpirun/internal/ctl", "mpirun/internal/proc", "mpirun/internal/plan",
		"internal/seg"}},
	// not the job that answers
	{"mpirun/internal/monitor", []string{"mpirun/internal/report", "mpirun/internal/table",
		"internal/sockets", "internal/stats", "cudaops/topo"}},
	{"mpirun/internal/output", []string{"mpirun/internal/stdio", "mpirun/internal/ctl", "mpirun/internal/plan",
		"internal/fifo", "internal/atomicfile"}},
	{"mpirun/internal/program", []string{"internal/env", "mpirun/internal/cmdline", "mpirun/internal/ctl"}},
	{"mpirun/internal/proc", []string{"mpirun/internal/stdio", "internal/env", "mpirun/internal/program",
		"mpirun/internal/symbols", "internal/machine"}},
	{"mpirun/internal/hostinfo", []string{"mpirun/internal/ctl", "mpirun/internal/plan", "mpirun/internal/proc",
		"mpirun/internal/program", "internal/env", "cudaops/topo", "internal/machine", "internal/sockets",
		"internal/seal"}},
	{"mpirun/internal/rendezvous", []string{"internal/boot/wire", "internal/sockets", "internal/seal",
		"mpirun/internal/monitor", "mpirun/internal/ctl", "mpirun/internal/remote"}},
	{"mpirun/internal/symbols", nil},
	{"mpirun/internal/ctl", []string{"internal/stats", "internal/version", "internal/boot/wire", "internal/boot/pmi"}},
	// no process: its time is virtual
	{"mpirun/startsim", []string{"mpirun/internal/link", "mpirun/internal/ctl", "internal/boot/wire", "comm/sim"}},
	{"mpirun/internal/testbed", []string{"internal/stress"}},
	{"mpirun", []string{"mpirun/internal", "internal/stats", "hostfile", "internal/cli", "internal/version",
		"internal/boot", "internal/seg", "internal/env", "internal/sockets", "internal/machine", "cudaops/topo"}},
	{"examples/train", []string{"examples/internal", "comm", "cudaops"}},
	{"examples", []string{"examples/internal", "comm", "internal/env", "internal/atomicfile", "internal/version"}},
	{"bench/gompi-bench", []string{"bench", "comm", "mpirun/startsim", "cudaops", "internal/cli", "internal/env",
		"internal/version", "internal/atomicfile"}},
	{"bench", []string{"comm", "internal/machine", "internal/atomicfile", "hostfile"}},
}

type pkg struct {
	ImportPath   string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

func TestImportsRunOneWay(t *testing.T) {
	for _, p := range list(t) {
		r := find(p.ImportPath)
		if r == nil {
			if p.ImportPath != "gompi/internal/archtest" {
				t.Errorf("no rule for %s: add one", p.ImportPath)
			}
			continue
		}
		for _, imp := range p.Imports {
			if strings.HasPrefix(imp, "gompi/") && !r.allows(imp) {
				t.Errorf("%s imports %s: %s may import only %v", p.ImportPath, imp, r.pkg, r.may)
			}
		}
	}
}

// An allowance that no package uses lets an import in that nobody has decided on.
func TestEveryAllowanceIsUsed(t *testing.T) {
	used := map[string]bool{}
	for _, p := range list(t, "CGO_ENABLED=1") {
		if r := find(p.ImportPath); r != nil {
			for _, imp := range p.Imports {
				for _, m := range r.may {
					used[r.pkg+" "+m] = used[r.pkg+" "+m] || below(imp, m)
				}
			}
		}
	}
	for _, r := range rules {
		for _, m := range r.may {
			if !used[r.pkg+" "+m] {
				t.Errorf("no package of %s imports %s: take it out of its rule", r.pkg, m)
			}
		}
	}
}

// Only packages that call the CUDA driver, NVML, UCX or PMIx, or that C calls, need a C compiler, and
// have a form without.
func TestCoreNeedsNoC(t *testing.T) {
	withC := []string{"gompi/cudaops/internal/driver", "gompi/transport/ucx/internal/ucp", "gompi/internal/boot/pmix",
		"gompi/comm/gompi_torch/libgompi", "gompi/mpi/libmpi", "gompi/internal/guest", "gompi/cudaops/topo/gompi-topo"}
	for _, p := range list(t, "CGO_ENABLED=1") {
		if slices.Contains(p.Imports, "C") && !slices.Contains(withC, p.ImportPath) {
			t.Errorf("%s imports C", p.ImportPath)
		}
	}
}

// Each module is imported where it earns its place, and nowhere else.
func TestModulesStayInTheirPlaces(t *testing.T) {
	places := map[string][]string{
		"github.com/spf13/pflag":                     {"internal/cli"},
		"github.com/NVIDIA/go-nvml":                  {"cudaops/topo/gompi-topo"},
		"github.com/google/uuid":                     {"internal/boot"},
		"github.com/rogpeppe/go-internal":            {"mpirun"},
		"gonum.org/v1/gonum":                         {"examples/internal/nn"},
		"gonum.org/v1/plot":                          {"bench"},
		"golang.org/x/sys":                           {"internal", "transport", "mpi", "cudaops", "mpirun", "bench"},
		"github.com/rogpeppe/go-internal/testscript": {"mpirun"},
	}
	for _, p := range list(t) {
		for _, imp := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			mod, places := module(places, imp)
			if mod != "" && !slices.ContainsFunc(places, func(at string) bool { return below(p.ImportPath, at) }) {
				t.Errorf("%s imports %s, which belongs in %v", p.ImportPath, mod, places)
			}
		}
	}
}

func module(places map[string][]string, imp string) (string, []string) {
	for mod, at := range places {
		if imp == mod || strings.HasPrefix(imp, mod+"/") {
			return mod, at
		}
	}
	return "", nil
}

func find(path string) *rule {
	for i := range rules {
		if below(path, rules[i].pkg) {
			return &rules[i]
		}
	}
	return nil
}

func (r *rule) allows(imp string) bool {
	may := r.may
	if !slices.Contains(words, r.pkg) {
		may = slices.Concat(words, may)
	}
	return below(imp, r.pkg) || slices.ContainsFunc(may, func(m string) bool { return below(imp, m) })
}

func below(path, dir string) bool {
	dir = "gompi/" + dir
	if alone, ok := strings.CutSuffix(dir, "/."); ok {
		return path == alone
	}
	return path == dir || strings.HasPrefix(path, dir+"/")
}

func list(t *testing.T, environment ...string) []pkg {
	t.Helper()
	return append(listIn(t, ".", "gompi/...", environment), listIn(t, "../../bench", "gompi/bench/...", environment)...)
}

// listIn lists packages of the module that dir is in.
func listIn(t *testing.T, dir, packages string, environment []string) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", packages)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), environment...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %s: %v", packages, err)
	}
	var pkgs []pkg
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
	if len(pkgs) < 5 {
		t.Fatalf("go list found %d packages of %s: want all", len(pkgs), packages)
	}
	return pkgs
}
