package contest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
)

// A Torch is a PyTorch that is installed here.
type Torch struct {
	Version string
	python  string
	dir     string // of our scripts
}

// Torch finds a Python that has PyTorch, first among those that are given.
func (w *Workshop) Torch(ctx context.Context, pythons ...string) (*Torch, error) {
	for _, python := range append(pythons, "python3", "/usr/bin/python3") {
		if _, err := exec.LookPath(python); err != nil {
			continue
		}
		out, err := Command{Args: []string{python, "-c", "import torch; print(torch.__version__)"}}.Run(ctx, toolLimit)
		if err == nil {
			return &Torch{Version: strings.TrimSpace(string(out.Stdout)), python: python, dir: w.dir}, nil
		}
	}
	return nil, fmt.Errorf("no PyTorch here (Debian: apt-get install python3-torch)")
}

// A Torchrun is a way in which torchrun starts ranks.
type Torchrun struct {
	Name  string
	Flags []string
	c10d  bool // the rendezvous
}

// Torchruns returns all configurations: both rendezvous backends, each with the default interval at
// which agents check their ranks and with the shortest that is useful.
func Torchruns() []Torchrun {
	quick := []string{"--monitor_interval", "0.05"}
	return []Torchrun{
		{Name: "torchrun-static"}, {Name: "torchrun-static-50ms", Flags: quick},
		{Name: "torchrun-c10d", c10d: true}, {Name: "torchrun-c10d-50ms", Flags: quick, c10d: true},
	}
}

// port is the last that was used for a rendezvous: each job has one of its own,
// because those of the one before linger.
var port atomic.Uint32

func nextPort() string { return strconv.Itoa(20000 + (os.Getpid()*37+int(port.Add(1)))%10000) }

// Run returns the job of np ranks here, or on h if that is not nil.
func (t *Torch) Run(r Torchrun, h *Hosts, np int, flags []string, args ...string) Job {
	addr, nodes, share, at := "127.0.0.1", 1, np, nextPort()
	if h != nil {
		addr, nodes, share = h.Addrs[0], len(h.Names), h.Share(np)
	}
	var j Job
	for node := range nodes {
		// Without -r and -t some versions do not start with Python 3.11; there is no rank 9.
		command := []string{t.python, "-m", "torch.distributed.run", "-r", "9:3", "-t", "9:3", "--nnodes", strconv.Itoa(nodes), "--nproc_per_node", strconv.Itoa(share)}
		if r.c10d {
			command = append(command, "--rdzv_backend", "c10d", "--rdzv_endpoint", addr+":"+at, "--rdzv_id", at)
		} else {
			command = append(command, "--node_rank", strconv.Itoa(node), "--master_addr", addr, "--master_port", at)
		}
		command = slices.Concat(command, r.Flags, flags, []string{t.hello()}, args)
		if h == nil {
			j = append(j, Command{Args: command})
		} else {
			j = append(j, h.On(node, append([]string{"env", "GLOO_SOCKET_IFNAME=" + h.Iface}, command...)...))
		}
	}
	return j
}

func (t *Torch) hello() string { return filepath.Join(t.dir, "torchhello.py") }

// Gloo returns torch.distributed with gloo as an Entrant, whose ranks gompirun
// starts. They are not bound: the thread that gloo talks with needs a processor
// beside the one that calls (allreduce of 64 KiB by two ranks bound to cores:
// 3.7 ms, not bound 0.5 ms).
func (t *Torch) Gloo(gompirun string) Entrant {
	e := t.Gompi(gompirun, nil)
	e.Name, e.Version = "gloo", "of PyTorch "+t.Version
	e.flags = []string{"-bind-to", "none"}
	e.program = []string{t.python, filepath.Join(t.dir, "torchbench.py")}
	e.slow = true // importing torch takes a second or more; its sockets cost the same in every state
	e.lacks = []string{"bibw", "mbw_mr", "reducescatter", "scan"}
	return e
}

// Gompi returns gompirun as an Entrant that starts the same script.
func (t *Torch) Gompi(gompirun string, h *Hosts, args ...string) Entrant {
	e := Gompi(gompirun, t.python)
	e.Name = "gompirun"
	e.program = append([]string{t.python, t.hello()}, args...)
	if h != nil {
		e.flags = []string{"-x", "GLOO_SOCKET_IFNAME=" + h.Iface}
	}
	return e
}

// WithFlags returns e with flags for its launcher.
func (e Entrant) WithFlags(flags ...string) Entrant {
	e.flags = append(e.flags[:len(e.flags):len(e.flags)], flags...)
	return e
}

// BLAS names the library that PyTorch's matrix products are computed by, as the process has it in
// its memory.
func (t *Torch) BLAS(ctx context.Context) string {
	const ask = `import re, torch
torch.ones(64, 64) @ torch.ones(64, 64)
libraries = {line.split("/")[-1].strip() for line in open("/proc/self/maps") if re.search(r"/lib[^/]*(blas|mkl_core)[^/]*\.so", line)}
print(" ".join(sorted(libraries)))`
	out, err := Command{Args: []string{t.python, "-c", ask}}.Run(ctx, toolLimit)
	if found := strings.TrimSpace(string(out.Stdout)); err == nil && found != "" {
		return found
	}
	return "unknown"
}

// HasGompi reports, as an error, that this PyTorch has no backend "gompi".
func (t *Torch) HasGompi(ctx context.Context) error {
	if _, err := (Command{Args: []string{t.python, "-c", "from gompi_torch import heap"}}).Run(ctx, toolLimit); err != nil {
		return fmt.Errorf("%s has no gompi_torch (make torch ONLY=build makes bin/torch/bin/python, which has)", t.python)
	}
	return nil
}

// DDP returns gompirun as an Entrant that starts our script of that name, whose ranks train over
// the backend gloo or gompi. They are not bound, as those of Gloo. h is nil for this machine.
func (t *Torch) DDP(gompirun, name, script, backend string, h *Hosts, env ...string) Entrant {
	e := t.Gompi(gompirun, h)
	e.Name, e.Version, e.env = name, "of PyTorch "+t.Version, env
	e.flags = append([]string{"-bind-to", "none"}, e.flags...)
	e.program = []string{t.python, filepath.Join(t.dir, script), "--backend", backend, "-impl", name}
	e.slow = true
	return e
}
