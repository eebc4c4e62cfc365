package remote

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"gompi/hostfile"
)

// An Srun starts agents on the nodes of a Slurm allocation, each as a job step of one task, which
// may use all of the job's resources on its node.
type Srun struct {
	job   string // its number
	agent string // the command that runs an agent; "" to find or send ours
	self  self

	once sync.Once
	gres map[string]string // by node, if it must be stated
}

// NewSrun returns an Srun for a job. agent, if not empty, is the command that runs a gompirun on
// the nodes. Otherwise the gompirun at our path is used, or ours is sent.
func NewSrun(job, agent string) (*Srun, error) {
	self, err := newSelf()
	return &Srun{job: job, agent: agent, self: self}, err
}

// Start implements Starter. It returns when the agent runs.
func (s *Srun) Start(ctx context.Context, h hostfile.Host) (*Process, error) {
	s.once.Do(func() {
		if countsGPUs(os.Environ()) {
			s.gres = askGRES(ctx, s.job)
		}
	})
	agent, err := s.step(ctx, h.Name, false)
	if errors.Is(err, errOther) {
		return s.step(ctx, h.Name, true)
	}
	return agent, err
}

// step makes a job step an agent.
func (s *Srun) step(ctx context.Context, node string, send bool) (*Process, error) {
	cmd := exec.Command("srun", srunArgs(s.job, node, s.gres[node], s.self.command(s.agent, send))...)
	cmd.Env = srunEnv(os.Environ())
	a, err := s.self.enter(ctx, cmd, ViaSrun)
	if err == nil {
		quicken(a.PID())
	}
	return a, err
}

// ByHand returns the shell command for a user to try the start of a step on h.
func (s *Srun) ByHand(h hostfile.Host) string {
	return fmt.Sprintf("srun --jobid=%s --nodes=1 --ntasks=1 --nodelist=%s true", s.job, h.Name)
}

// srunArgs returns the arguments that make srun start the agent on a node.
//
// Without --unbuffered Slurm forwards whole lines only, and the channel has none. With the flag
// Slurm uses a pseudo-terminal, which changes no byte.
func srunArgs(job, node, gres, command string) []string {
	args := []string{
		"--jobid=" + job, "--nodes=1", "--ntasks=1", "--nodelist=" + node,
		"--mpi=none", "--cpu-bind=none", "--export=ALL", "--kill-on-bad-exit=1", "--unbuffered", "--quiet",
	}
	if gres != "" {
		args = append(args, "--gres="+gres)
	}
	return append(args, "sh", "-c", command)
}

// notForSrun are variables that srun would take as options of the agent's step: they would reduce
// the step to one task's share of the node or a part of the GPUs, or redirect its output. The
// last line describes the user's login to this host.
var notForSrun = []string{
	"SLURM_CPUS_PER_TASK", "SRUN_CPUS_PER_TASK", "SLURM_NTASKS_PER_NODE", "SLURM_NTASKS_PER_CORE",
	"SLURM_NTASKS_PER_SOCKET",
	"SLURM_NTASKS_PER_GPU", "SLURM_GPUS", "SLURM_GPUS_PER_NODE", "SLURM_GPUS_PER_TASK", "SLURM_GPUS_PER_SOCKET",
	"SLURM_GPU_BIND", "SLURM_TRES_PER_TASK", "SLURM_DISTRIBUTION", "SLURM_HINT", "SLURM_CPU_BIND", "SLURM_EXACT",
	"SLURM_EXCLUSIVE",
	"SLURM_LABELIO", "SLURM_STDINMODE", "SLURM_STDOUTMODE", "SLURM_STDERRMODE", "SLURM_MULTI_PROG",
	"SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY",
}

// srunEnv returns the environment for srun. SLURM_OVERLAP lets the step share the node with
// others. An old srun ignores the variable and shares anyway, but would refuse --overlap.
func srunEnv(env []string) []string {
	out := slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(notForSrun, name)
	})
	return append(out, "SLURM_OVERLAP=1")
}

// countsGPUs reports whether the job has requested GPUs other than per node. A step on one node
// gets its part of such GPUs only with --gres.
func countsGPUs(env []string) bool {
	return slices.ContainsFunc(env, func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return name == "SLURM_NTASKS_PER_GPU" ||
			strings.HasPrefix(name, "SLURM_GPUS") && name != "SLURM_GPUS_PER_NODE" && name != "SLURM_GPUS_ON_NODE"
	})
}

// askGRES asks Slurm for the job's resources on each node. The result is nil without an answer:
// srun then reports missing resources.
func askGRES(ctx context.Context, job string) map[string]string {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "scontrol", "--details", "show", "job", job)
	cmd.WaitDelay = time.Second // a site's scontrol may be a script, whose child is not killed
	out, err := cmd.Output()
	if err != nil {
		return nil
	}
	return parseGRES(string(out))
}

// parseGRES reads the lines of scontrol with the job's resources on its nodes,
//
//	Nodes=n[1-2] CPU_IDs=0-3 Mem=0 GRES=gpu:v100:2(IDX:0-1)
//
// and returns the value of --gres for each node: gpu:v100:2.
func parseGRES(text string) map[string]string {
	found := map[string]string{}
	for line := range strings.Lines(text) {
		var nodes, gres string
		for _, field := range strings.Fields(line) {
			if v, ok := strings.CutPrefix(field, "Nodes="); ok {
				nodes = v
			} else if v, ok := strings.CutPrefix(field, "GRES="); ok {
				gres = withoutIndices(v)
			}
		}
		if nodes == "" || gres == "" {
			continue
		}
		names, err := hostfile.ExpandNodes(nodes)
		if err != nil {
			continue
		}
		for _, n := range names {
			found[n] = gres
		}
	}
	return found
}

// withoutIndices removes the parts in parentheses.
func withoutIndices(s string) string {
	var b strings.Builder
	depth := 0
	for _, r := range s {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case depth == 0:
			b.WriteRune(r)
		}
	}
	return b.String()
}
