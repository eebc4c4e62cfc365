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

// A rule says what the packages below one path may import of this module: the
// packages below the given paths, and themselves. "comm/." is package comm alone.
type rule struct {
	pkg string
	may []string
}

// rules are tried from the top; the first that fits a package is its rule.
var rules = []rule{
	{"internal/mem", nil},
	{"internal/world", nil},
	{"internal/fifo", nil},
	{"internal/atomicfile", nil},
	{"internal/env", nil},
	{"internal/version", nil},
	{"internal/textfile", nil},
	{"internal/cli", []string{"internal/version"}},
	{"internal/poll", nil},
	{"internal/rdma", nil},
	{"internal/machine", []string{"internal/env", "internal/atomicfile"}},
	{"internal/route", nil},
	{"internal/sockets", nil},
	{"internal/seal", nil},
	{"internal/stress", nil},
	{"internal/ci", nil},
	{"internal/monitor", nil}, // of libraries for C alone
	{"internal/wheel", []string{"internal/version"}},
	{"internal/cgroup", nil},
	{"internal/seg", []string{"internal/mem", "internal/world", "internal/cgroup"}},
	{"internal/timeline", nil},
	{"internal/stats", []string{"internal/seg"}},
	{"internal/boot", []string{"internal/env", "internal/world", "internal/seg", "internal/sockets", "internal/seal", "internal/route"}},
	{"transport", []string{"internal/sockets", "internal/rdma", "internal/mem", "internal/world", "internal/fifo", "internal/poll", "internal/route", "internal/seal", "internal/env"}},
	{"comm/internal/match", nil},
	{"comm/internal/lease", []string{"internal/mem", "internal/world"}},    // not whose rings it lends
	{"comm/internal/progress", []string{"internal/world"}},                 // not even transport: it polls whatever there is
	{"comm/internal/call", []string{"internal/mem", "internal/seg"}},       // of seg the kinds
	{"comm/internal/path", []string{"comm/internal/call", "internal/mem"}}, // pure: who chooses does nothing else
	{"comm/internal/card", []string{"comm/internal/path", "internal/boot", "internal/world", "internal/cgroup"}},
	{"comm/internal/layout", []string{"internal/mem"}},
	{"comm/internal/mpi/datatype", []string{"comm/internal/layout", "internal/mem"}}, // not what a message is
	{"comm/internal/mpi/table", nil},
	{"comm/internal/mpi/abi", []string{"comm/.", "comm/internal/mpi/table", "comm/internal/mpi/datatype"}}, // not what is done with it
	{"comm/internal/mpi/errs", []string{"comm/.", "comm/internal/call", "internal/mem", "internal/seg", "comm/internal/mpi/abi", "comm/internal/mpi/table", "comm/internal/mpi/datatype"}},
	{"comm/internal/mpi/infos", []string{"comm/internal/mpi/abi", "comm/internal/mpi/errs", "comm/internal/mpi/table"}},
	{"comm/internal/mpi/attrs", []string{"comm/internal/mpi/abi", "comm/internal/mpi/errs"}},                                                                                                                                                               // not what carries them
	{"comm/internal/mpi/dtypes", []string{"comm/.", "comm/internal/mpi/abi", "comm/internal/mpi/errs", "comm/internal/mpi/attrs", "comm/internal/mpi/table", "comm/internal/mpi/datatype", "comm/internal/layout", "comm/internal/lease", "internal/mem"}}, // what C may know of a datatype
	{"comm/internal/mpi/ops", []string{"comm/.", "comm/internal/call", "internal/mem", "comm/internal/mpi/abi", "comm/internal/mpi/errs", "comm/internal/mpi/dtypes", "comm/internal/mpi/table", "comm/internal/mpi/datatype"}},
	{"comm/internal/mpi/comms", []string{"comm/.", "comm/internal/door", "comm/internal/lease", "comm/internal/call", "comm/internal/mpi/abi", "comm/internal/mpi/datatype", "comm/internal/mpi/dtypes", "comm/internal/mpi/errs", "comm/internal/mpi/infos", "comm/internal/mpi/attrs", "comm/internal/mpi/ops", "comm/internal/mpi/table", "comm/topology"}}, // of what is sent, what C may know
	{"comm/internal/mpi/p2p", []string{"comm/.", "comm/internal/mpi/abi", "comm/internal/mpi/errs", "comm/internal/mpi/dtypes", "comm/internal/mpi/comms", "comm/internal/mpi/table"}},
	{"comm/internal/mpi/collective", []string{"comm/.", "comm/internal/door", "comm/internal/call", "internal/mem", "comm/internal/mpi/abi", "comm/internal/mpi/errs", "comm/internal/mpi/infos", "comm/internal/mpi/dtypes", "comm/internal/mpi/ops", "comm/internal/mpi/comms", "comm/internal/mpi/p2p"}},
	{"comm/internal/mpi/windows", []string{"comm/.", "comm/internal/rma", "comm/internal/lease", "internal/mem", "comm/internal/mpi/abi", "comm/internal/mpi/errs", "comm/internal/mpi/infos", "comm/internal/mpi/attrs", "comm/internal/mpi/datatype", "comm/internal/mpi/dtypes", "comm/internal/mpi/ops", "comm/internal/mpi/comms", "comm/internal/mpi/p2p", "comm/internal/mpi/table"}},
	{"comm/internal/mpi/files", []string{"comm/.", "comm/internal/layout", "comm/internal/mpi/abi", "comm/internal/mpi/datatype", "comm/internal/mpi/errs", "comm/internal/mpi/infos", "comm/internal/mpi/dtypes", "comm/internal/mpi/comms", "comm/internal/mpi/p2p", "comm/internal/mpi/table"}},
	{"comm/internal/mpi", nil}, // not comm: what is over it are the packages below
	{"comm/internal/trial", nil},
	{"comm/internal/logging", nil},
	{"comm/internal/fabric", []string{"internal/boot", "transport"}},
	{"comm/internal/coll", []string{"comm/internal/call", "comm/internal/path", "internal/mem"}},
	{"comm/internal/hier", []string{"comm/internal/call", "comm/internal/path", "comm/internal/coll", "comm/internal/shmcoll", "internal/mem"}},
	{"comm/internal/payload", []string{"comm/internal/peers", "comm/internal/trial", "transport", "internal/mem", "internal/fifo", "internal/world"}}, // not whose messages it moves
	{"comm/internal/peers", []string{"transport", "internal/mem", "internal/world"}},                                                                  // not what the frames are for
	{"comm/internal/record", []string{"comm/internal/progress", "internal/seg"}},
	{"comm/internal/liveness", []string{"comm/internal/peers", "comm/internal/record", "comm/internal/progress", "comm/internal/call", "transport", "internal/mem", "internal/fifo", "internal/boot", "internal/seg", "internal/world"}},                                                          // not what it ends
	{"comm/internal/message", []string{"comm/internal/peers", "comm/internal/lease", "comm/internal/payload", "comm/internal/liveness", "comm/internal/record", "comm/internal/match", "comm/internal/progress", "transport", "internal/mem", "internal/boot", "internal/seg", "internal/world"}}, // not what a collective is
	{"comm/internal/round", []string{"comm/internal/message", "comm/internal/lease", "comm/internal/payload", "comm/internal/peers", "comm/internal/liveness", "comm/internal/record", "comm/internal/progress", "comm/internal/call", "comm/internal/coll", "comm/internal/shmsync", "transport", "internal/mem", "internal/fifo", "internal/seg", "internal/world"}},
	{"comm/internal/symheap", nil},
	{"comm/internal/shmsync/shmsynctest", []string{"comm/internal/shmsync", "internal/stress", "internal/world"}},
	{"comm/internal/shmsync", []string{"internal/world", "internal/mem"}}, // not even what a collective is: it knows steps
	{"comm/internal/shmcoll", []string{"comm/internal/trial", "comm/internal/call", "comm/internal/path", "comm/internal/coll", "comm/internal/shmsync", "comm/internal/symheap", "internal/mem"}},
	{"comm/internal/door", []string{"comm/internal/call", "comm/internal/layout", "comm/internal/lease"}}, // not comm, whose doors it has
	{"comm/internal/exec", []string{"comm/internal/call", "comm/internal/path", "comm/internal/coll", "comm/internal/hier", "comm/internal/shmcoll", "comm/internal/round", "internal/mem"}},
	{"comm/topology", []string{"comm/."}}, // the public API alone
	{"comm/internal/rma", []string{"comm/.", "comm/internal/door", "comm/internal/lease", "comm/internal/layout", "internal/mem"}},
	{"comm/window", []string{"comm/.", "comm/internal/door", "comm/internal/layout", "comm/internal/rma", "internal/mem"}},
	{"comm/internal/randprog", []string{"comm", "internal/mem", "internal/stress"}},
	{"comm/sim", []string{"comm/internal/call", "comm/internal/path", "comm/internal/coll", "comm/internal/hier", "internal/mem", "internal/stress"}}, // no transport: its time is virtual
	{"comm/commtest", []string{"comm", "transport", "internal/boot", "internal/seg", "internal/world"}},
	{"comm/ddp/sampler", nil}, // computes alone
	{"comm/ddp/compress", []string{"comm", "internal/mem"}},
	{"comm/ddp", []string{"comm", "internal/atomicfile", "internal/timeline"}},
	{"comm/libgompi", []string{"comm", "internal/mem", "internal/boot", "internal/env", "internal/sockets", "internal/monitor"}},
	{"comm/libmpi", []string{"comm/internal", "internal/mem", "internal/env", "internal/monitor", "internal/stats"}},
	{"comm", []string{"comm/internal", "transport", "internal/version", "internal/stats", "internal/mem", "internal/fifo", "internal/boot", "internal/seg", "internal/world", "internal/env", "internal/poll", "internal/cgroup", "internal/machine"}},
	{"cudaops/topo/gompi-topo", []string{"cudaops/topo", "internal/cli"}},
	{"cudaops/topo", nil},
	{"cudaops/cudatest", []string{"internal/env"}},
	{"cudaops", []string{"internal/mem", "internal/env"}}, // not comm: they meet in mem.Buffer and mem.Space
	{"hostfile", []string{"internal/textfile"}},
	{"mpirun/internal/plan", []string{"hostfile", "internal/cli", "internal/textfile"}},
	{"mpirun/internal/allocation", []string{"hostfile", "internal/env"}},
	{"mpirun/internal/cmdline", []string{"internal/textfile", "internal/cli", "internal/env", "mpirun/internal/plan", "mpirun/internal/pattern"}},
	{"mpirun/internal/manual", []string{"internal/version", "mpirun/internal/cmdline"}},
	{"mpirun/internal/pattern", nil},
	// The job reaches agents, this process and the user through what it is given: it knows
	// of link the events.
	{"mpirun/internal/job", []string{"mpirun/internal/link", "mpirun/internal/control", "mpirun/internal/stall", "mpirun/internal/output", "mpirun/internal/plan",
		"mpirun/internal/program", "mpirun/internal/launchenv", "mpirun/internal/allocation", "mpirun/internal/cmdline", "mpirun/internal/ctl",
		"mpirun/internal/pattern", "mpirun/internal/report", "hostfile", "internal/boot", "internal/world", "internal/env", "internal/route", "cudaops/topo"}},
	{"mpirun/internal/report", []string{"internal/stats", "internal/seg", "internal/timeline"}}, // not how figures came
	{"mpirun/internal/link", []string{"mpirun/internal/remote", "mpirun/internal/tree", "mpirun/internal/ctl", "hostfile"}},
	{"mpirun/internal/tree", []string{"mpirun/internal/remote", "internal/boot/wire", "hostfile"}}, // not what it passes on
	{"mpirun/internal/stall", []string{"mpirun/internal/ctl", "mpirun/internal/plan", "internal/seg"}},
	{"mpirun/internal/control", []string{"internal/sockets"}}, // not whose questions it brings
	{"mpirun/internal/listing", []string{"mpirun/internal/control", "mpirun/internal/report"}},
	{"mpirun/internal/attach", []string{"mpirun/internal/control", "mpirun/internal/remote"}},
	{"mpirun/internal/output", []string{"mpirun/internal/ctl", "mpirun/internal/pattern", "internal/fifo", "internal/atomicfile"}},
	{"mpirun/internal/program", []string{"mpirun/internal/launchenv", "mpirun/internal/cmdline", "mpirun/internal/ctl"}},
	{"mpirun/internal/limits", []string{"internal/cgroup"}},
	{"mpirun/internal/proc", []string{"internal/env", "mpirun/internal/program", "internal/cgroup"}},
	{"mpirun/internal/hostinfo", []string{"mpirun/internal/ctl", "mpirun/internal/plan", "mpirun/internal/proc", "internal/cgroup", "internal/env", "internal/route", "cudaops/topo", "internal/rdma", "internal/machine", "internal/sockets", "internal/seal"}},
	{"mpirun/internal/launchenv", []string{"internal/env"}},
	{"mpirun/internal/rendezvous", []string{"internal/boot/wire", "internal/sockets", "internal/seal", "mpirun/internal/ctl", "mpirun/internal/remote"}},
	{"mpirun/internal/symbols", nil},
	{"mpirun/internal/ctl", []string{"internal/stats", "internal/version", "internal/boot/wire", "internal/boot/pmi"}},
	{"mpirun/startsim", []string{"mpirun/internal/tree", "mpirun/internal/ctl", "internal/boot/wire", "comm/sim"}}, // no process: its time is virtual
	{"mpirun", []string{"mpirun/internal", "internal/stats", "hostfile", "internal/cli", "internal/version", "internal/boot", "internal/seg", "internal/world", "internal/env", "internal/route", "internal/sockets", "internal/cgroup", "cudaops/topo"}},
	{"examples/train", []string{"examples/internal", "comm", "cudaops", "internal/env"}},
	{"examples", []string{"examples/internal", "comm", "internal/env", "internal/atomicfile", "internal/version"}},
	{"bench/gompi-bench", []string{"bench", "comm", "mpirun/startsim", "cudaops", "internal/cli", "internal/mem", "internal/env", "internal/machine", "internal/version", "internal/atomicfile"}},
	{"bench", []string{"comm", "internal/cli", "internal/mem", "internal/env", "internal/machine", "internal/atomicfile", "hostfile"}},
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

// Only what calls the CUDA driver, NVML or UCX, or what C calls, is made with a C compiler, and has
// a form that is made without.
func TestCoreNeedsNoC(t *testing.T) {
	withC := []string{"gompi/cudaops/internal/driver", "gompi/transport/ucx/internal/ucp", "gompi/comm/libgompi", "gompi/comm/libmpi", "gompi/internal/monitor", "gompi/cudaops/topo/gompi-topo"}
	for _, p := range list(t, "CGO_ENABLED=1") {
		if slices.Contains(p.Imports, "C") && !slices.Contains(withC, p.ImportPath) {
			t.Errorf("%s imports C", p.ImportPath)
		}
	}
}

// The C library is one user of comm among others.
func TestTheCLibraryUsesThePublicAPI(t *testing.T) {
	for _, p := range list(t, "CGO_ENABLED=1") {
		if p.ImportPath != "gompi/comm/libgompi" {
			continue
		}
		for _, imp := range p.Imports {
			if strings.HasPrefix(imp, "gompi/comm/") {
				t.Errorf("%s imports %s: want gompi/comm alone", p.ImportPath, imp)
			}
		}
		return
	}
	t.Error("there is no gompi/comm/libgompi")
}

// Each module is imported where it earns its place, and nowhere else.
func TestModulesStayInTheirPlaces(t *testing.T) {
	places := map[string][]string{
		"github.com/spf13/pflag":                     {"internal/cli"},
		"github.com/NVIDIA/go-nvml":                  {"cudaops/topo/gompi-topo"},
		"github.com/google/uuid":                     {"internal/boot"},
		"github.com/libp2p/go-reuseport":             {"mpirun"},
		"github.com/rogpeppe/go-internal":            {"mpirun"},
		"gonum.org/v1/gonum":                         {"examples/internal/nn"},
		"gonum.org/v1/plot":                          {"bench"},
		"golang.org/x/sys":                           {"internal", "transport", "comm", "cudaops", "mpirun", "bench"},
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
	return below(imp, r.pkg) || slices.ContainsFunc(r.may, func(m string) bool { return below(imp, m) })
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
