package peers

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gompi/bench/internal/runner"
)

// The peers in PyTorch, whose ranks gompirun starts.
const (
	Gloo        = "gloo"
	TorchGompi  = "torch-gompi"  // the backend gompi_torch
	TorchUnsent = "torch-unsent" // sends nothing: the cost of autograd and of DDP's copies
)

var torchNames = []string{Gloo, TorchGompi, TorchUnsent}

// torch is an installed PyTorch.
type torch struct{ python, version string }

// Torch finds a Python with PyTorch, the newest first.
func (b *Bench) Torch(ctx context.Context) (python, version string, err error) {
	if b.torch != nil {
		return b.torch.python, b.torch.version, nil
	}
	candidates := []string{b.Python}
	if b.Python == "" {
		made, _ := filepath.Glob(filepath.Join(b.Venvs, "../torch*/bin/python")) // by make torch2 and make torch
		slices.Reverse(made)
		candidates = append(made, "python3", "/usr/bin/python3")
	}
	for _, python := range candidates {
		if _, err := exec.LookPath(python); err != nil {
			continue
		}
		out, err := runner.Command{Args: []string{python, "-c",
			"import torch; print(torch.__version__)"}}.Run(ctx, toolLimit)
		if err == nil {
			b.torch = &torch{python, strings.TrimSpace(string(out.Stdout))}
			return b.Torch(ctx)
		}
	}
	return "", "", errors.New("no PyTorch here (make torch2 ONLY=build; Debian: apt-get install python3-torch)")
}

// enterTorch prepares a script. Its ranks are not bound: gloo's thread needs a processor beside the
// calling thread's (allreduce of 64 KiB by two ranks: bound to cores 3.7 ms, not bound 0.5 ms).
func (b *Bench) enterTorch(ctx context.Context, name string, p Program) (e runner.Entrant, err error) {
	python, version, err := b.Torch(ctx)
	if err != nil {
		return e, err
	}
	if p.Python == "" {
		return e, errors.New("there is no such program for it")
	}
	args := []string{"--backend", "gloo"}
	switch name {
	case TorchUnsent:
		args = append(args, "--unsent")
	case TorchGompi:
		args[1] = "gompi"
		if _, err := (runner.Command{Args: []string{python, "-c", "from gompi_torch import heap"}}).Run(ctx,
			toolLimit); err != nil {
			return e, fmt.Errorf("%s has no gompi_torch (make torch ONLY=build makes a Python that has)", python)
		}
	}
	flags := []string{"-bind-to", "none"}
	if b.Hosts != nil {
		flags = append(flags, "-x", "GLOO_SOCKET_IFNAME="+b.Hosts.Iface)
	}
	e = b.Gompi(flags, slices.Concat([]string{python, filepath.Join(b.dir, p.Python)}, args, p.Args)...)
	e.Version, e.Lacks = "of PyTorch "+version,
		[]string{"irecv", "vector", "sendrecv", "iprobe", "iprobe_found", "iprobe_recv", "gap1ms", "gap10ms", "halo",
			"put", "get", "store", "fetch_and_op", "reduce_scatter", "scan"}
	return e, nil
}

// Torchruns are settings of torchrun: both rendezvous backends, each with the default interval
// between the agents' checks of their ranks, and with the shortest useful interval.
var Torchruns = []string{"torchrun-static", "torchrun-static-50ms", "torchrun-c10d", "torchrun-c10d-50ms"}

// lastPort is the port of the last rendezvous. Each job has a port of its own, because a job's
// sockets linger.
var lastPort = 20000

// Torchrun returns the entrant that starts torchhello.py by one of Torchruns.
func (b *Bench) Torchrun(name, python, version string) runner.Entrant {
	var flags []string
	if strings.HasSuffix(name, "-50ms") {
		flags = append(flags, "--monitor_interval", "0.05")
	}
	start := func(np int, args ...string) (j runner.Job) {
		lastPort++
		addr, nodes, share, port := "127.0.0.1", 1, np, strconv.Itoa(lastPort)
		if h := b.Hosts; h != nil {
			addr, nodes, share = h.Addrs[0], len(h.Names), h.Share(np)
		}
		for node := range nodes {
			// Without -r and -t some versions do not start with Python 3.11; there is no rank 9.
			command := []string{python, "-m", "torch.distributed.run", "-r", "9:3", "-t", "9:3", "--nnodes",
				strconv.Itoa(nodes), "--nproc_per_node", strconv.Itoa(share)}
			if strings.Contains(name, "c10d") {
				command = append(command, "--rdzv_backend", "c10d", "--rdzv_endpoint", addr+":"+port, "--rdzv_id", port)
			} else {
				command = append(command, "--node_rank", strconv.Itoa(node), "--master_addr", addr,
					"--master_port", port)
			}
			command = slices.Concat(command, flags, []string{filepath.Join(b.dir, "torchhello.py")}, args)
			if b.Hosts == nil {
				j = append(j, runner.Command{Args: command})
			} else {
				j = append(j, b.Hosts.On(node, append([]string{"env", "GLOO_SOCKET_IFNAME=" + b.Hosts.Iface},
					command...)...))
			}
		}
		return j
	}
	return runner.Entrant{Name: name, Version: version, Start: start}
}

// BLAS names the library of PyTorch's matrix products, as mapped in its process.
func (b *Bench) BLAS(ctx context.Context) string {
	const ask = `import re, torch
torch.ones(64, 64) @ torch.ones(64, 64)
libraries = {line.split("/")[-1].strip() for line in open("/proc/self/maps") if re.search(r"/lib[^/]*(blas|mkl_core)[^/]*\.so", line)}
print(" ".join(sorted(libraries)))`
	python, version, err := b.Torch(ctx)
	if err != nil {
		return ""
	}
	out, err := runner.Command{Args: []string{python, "-c", ask}}.Run(ctx, toolLimit)
	found := strings.TrimSpace(string(out.Stdout))
	if err != nil || found == "" {
		found = "unknown BLAS"
	}
	return fmt.Sprintf("PyTorch %s computes with %s, one thread for each rank", version, found)
}
