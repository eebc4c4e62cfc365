//go:build linux

package mpirun

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gompi/comm"
	"gompi/internal/boot/pmix"
	"gompi/internal/stress"
	"gompi/mpirun/internal/testbed"
)

// worldMain is a program of gompi for other launchers to start. Its arguments name a failure, and
// its rank.
func worldMain() {
	what, who := "", -1
	if len(os.Args) > 2 {
		what = os.Args[1]
		who, _ = strconv.Atoi(os.Args[2])
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if what == "absent" { // for launchers that speak PMIx
		if os.Getenv(pmix.EnvRank) == os.Args[2] {
			return
		}
		ctx, cancel = context.WithTimeout(ctx, beat)
		defer cancel()
	}
	if err := world(ctx, what, who); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
}

func world(ctx context.Context, what string, who int) error {
	c, err := comm.Init(ctx)
	if err != nil {
		return err
	}
	mine, sum := []int64{int64(c.Rank())}, make([]int64, 1)
	if err := comm.Allreduce(ctx, c, mine, sum, comm.Sum); err != nil {
		return err
	}
	fmt.Printf("rank %d of %d: sum %d\n", c.Rank(), c.Size(), sum[0])
	if c.Rank() == who {
		switch what {
		case "kill":
			p, err := os.FindProcess(os.Getpid())
			if err != nil {
				return err
			}
			return p.Kill()
		case "abort":
			if err := c.Abort(7, "no disk"); err != nil {
				return err
			}
		}
	}
	for what != "" { // until it is told of
		if err := comm.Barrier(ctx, c); err != nil {
			return err
		}
	}
	return c.Close(ctx)
}

// A way is how another launcher starts the program called world with n ranks.
type way struct {
	name string
	run  func(t *testing.T, n int, args ...string) (status int, stdout, stderr string)
}

// ways returns all launchers that are installed here.
func ways(t *testing.T) []way {
	t.Helper()
	t.Setenv("PMIX_MCA_psec", "native") // Open MPI's mpirun warns without munge
	command := func(words ...string) func(t *testing.T, n int, args ...string) (int, string, string) {
		return func(t *testing.T, n int, args ...string) (int, string, string) {
			t.Helper()
			if _, err := exec.LookPath(words[0]); err != nil {
				t.Skipf("left out: there is no %s (packages mpich and openmpi-bin)", words[0])
			}
			line := append(append([]string{}, words[1:]...), fmt.Sprint(n), "world")
			return runCommand(t, words[0], append(line, args...)...)
		}
	}
	return []way{
		{"hydra", command("mpiexec.hydra", "-np")},
		{"hydra over TCP", command("mpiexec.hydra", "-pmi-port", "-np")},
		{"Open MPI", command("mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-np")},
		{"torchrun on one host", variables("LOCAL_WORLD_SIZE=%d", "TORCHELASTIC_RUN_ID="+t.Name())},
		{"torchrun with a token", variables("GOMPI_TOKEN=0123456789abcdef")},
		{"a shared folder", variables("GOMPI_RDZV=file://" + t.TempDir())},
	}
}

// variables starts plain processes with the environment that torchrun gives its
// own, and more.
func variables(more ...string) func(t *testing.T, n int, args ...string) (int, string, string) {
	return func(t *testing.T, n int, args ...string) (status int, stdout, stderr string) {
		t.Helper()
		port := takenPort(t)
		var all sync.WaitGroup
		statuses, outs, errs := make([]int, n), make([]string, n), make([]string, n)
		for r := range n {
			vars := []string{
				fmt.Sprintf("RANK=%d", r), fmt.Sprintf("WORLD_SIZE=%d", n), "MASTER_ADDR=127.0.0.1",
				fmt.Sprintf("MASTER_PORT=%d", port), "TORCHELASTIC_USE_AGENT_STORE=True",
			}
			for _, v := range more {
				vars = append(vars, strings.ReplaceAll(v, "%d", fmt.Sprint(n)))
			}
			all.Go(func() {
				statuses[r], outs[r], errs[r] = runCommand(t, "env", append(append(vars, "world"), args...)...)
			})
		}
		all.Wait()
		for _, s := range statuses {
			status = max(status, s)
		}
		return status, strings.Join(outs, ""), strings.Join(errs, "")
	}
}

// takenPort returns a port that stays taken until the test ends, like MASTER_PORT by torchrun's
// store: binding it fails.
func takenPort(t *testing.T) int {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return ln.Addr().(*net.TCPAddr).Port
}

// wantWorld checks that n ranks have formed one world.
func wantWorld(t *testing.T, n, status int, out, errs string) {
	t.Helper()
	if status != 0 {
		t.Fatalf("status %d\n%s%s", status, out, errs)
	}
	for r := range n {
		if want := fmt.Sprintf("rank %d of %d: sum %d\n", r, n, n*(n-1)/2); strings.Count(out, want) != 1 {
			t.Errorf("%q has not once %q", out, want)
		}
	}
}

func TestOtherLaunchersRanksFormOneWorld(t *testing.T) {
	for _, w := range ways(t) {
		t.Run(w.name, func(t *testing.T) {
			for _, n := range []int{1, 2, 5} {
				status, out, errs := w.run(t, n)
				wantWorld(t, n, status, out, errs)
			}
		})
	}
}

func TestADeadRankEndsTheJobUnderOtherLaunchers(t *testing.T) {
	stress.Slow(t, "it kills ranks again and again")
	for _, w := range ways(t) {
		t.Run(w.name, func(t *testing.T) {
			for _, victim := range []string{"0", "2"} {
				start := time.Now()
				status, out, errs := w.run(t, 4, "kill", victim)
				if took := time.Since(start); status == 0 || took > soon {
					t.Errorf("status %d after %v\n%s%s", status, took, out, errs)
				}
				if strings.HasPrefix(w.name, "hydra") {
					continue // hydra kills the others before they can print
				}
				if want := "rank " + victim + " (host "; !strings.Contains(errs, want) {
					t.Errorf("%q lacks %q", errs, want)
				}
			}
		})
	}
}

func TestAbortEndsTheJobUnderOtherLaunchers(t *testing.T) {
	for _, w := range ways(t) {
		t.Run(w.name, func(t *testing.T) {
			status, out, errs := w.run(t, 3, "abort", "1")
			if status == 0 || strings.HasPrefix(w.name, "hydra") && status != 7 {
				t.Errorf("status %d\n%s%s", status, out, errs)
			}
		})
	}
}

// Without any way to meet, the ranks end at once, and one of them explains at length.
func TestRanksThatCannotMeetSaySoOnce(t *testing.T) {
	status, out, errs := variables()(t, 4)
	if status != 3 || out != "" || strings.Count(errs, "each would be rank 0 of 1, 4 times") != 1 ||
		strings.Count(errs, "\n") != 4 {
		t.Errorf("status %d, %q, %q; want one long line and three short ones", status, out, errs)
	}
}

func TestSlurmStepsFormOneWorld(t *testing.T) {
	t.Parallel() // it waits for Slurm
	bed := testbed.NewSlurm(t, 2)
	self, err := exec.LookPath("world")
	if err != nil {
		t.Fatal(err)
	}
	shared := t.TempDir()
	run := func(t *testing.T, words ...string) (int, string, string) {
		t.Helper()
		words = append([]string{"-i"}, append(bed.Env(), words...)...)
		return runCommand(t, "env", words...)
	}
	t.Run("pmi2", func(t *testing.T) {
		status, out, errs := run(t, "srun", "--mpi=pmi2", "-N2", "-n4", self)
		wantWorld(t, 4, status, out, errs)
	})
	t.Run("shared folder", func(t *testing.T) {
		status, out, errs := run(t, "GOMPI_RDZV=file://"+shared, "srun", "--mpi=none", "-N2", "-n4", self)
		wantWorld(t, 4, status, out, errs)
	})
	t.Run("one node", func(t *testing.T) {
		status, out, errs := run(t, "srun", "--mpi=none", "-N1", "-n4", self)
		wantWorld(t, 4, status, out, errs)
	})
	t.Run("no way", func(t *testing.T) {
		status, _, errs := run(t, "srun", "--mpi=none", "-N2", "-n4", self)
		if status != 3 || strings.Count(errs, "srun --mpi=pmi2") != 1 {
			t.Errorf("status %d, %q; want 3, and once the line to type", status, errs)
		}
	})
	t.Run("a dead rank", func(t *testing.T) {
		for _, how := range [][]string{{"srun", "--mpi=pmi2"}, {"GOMPI_RDZV=file://" + shared, "srun", "--mpi=none"}} {
			status, out, errs := run(t, append(how, "-N2", "-n4", self, "kill", "1")...)
			if status == 0 || !strings.Contains(errs, "rank 1 (host ") {
				t.Errorf("%v: status %d\n%s%s", how, status, out, errs)
			}
		}
	})
}

func TestTorchrunsRanksFormOneWorld(t *testing.T) {
	if _, err := exec.LookPath("/usr/bin/torchrun"); err != nil {
		t.Skip("left out: there is no torchrun (package python3-torch)")
	}
	stress.Long(t, "torchrun needs seconds to start")
	t.Parallel() // it waits most of the time
	torchrun := func(t *testing.T, variables []string, args ...string) (int, string, string) {
		t.Helper()
		// Without these two, PyTorch 1.13 fails under Python 3.11; no rank has local rank 9.
		return runCommand(t, "env", slices.Concat(variables,
			[]string{"/usr/bin/torchrun", "--redirects=9:1", "--tee=9:1", "--no_python"}, args)...)
	}
	// Its --standalone is port 29400, where a second torchrun joins the first one's
	// store, and fails when that ends. Port 0 is any free port.
	alone := []string{"--rdzv_backend=c10d", "--rdzv_endpoint=localhost:0", "--nproc_per_node=3", "world"}
	t.Run("one host", func(t *testing.T) {
		status, out, errs := torchrun(t, nil, alone...)
		wantWorld(t, 3, status, out, errs)
	})
	t.Run("two hosts", func(t *testing.T) {
		port := testbed.FreePorts(t, 1)[0]
		var all sync.WaitGroup
		var statuses [2]int
		var outs, errs [2]string
		for node := range 2 {
			all.Go(func() {
				statuses[node], outs[node], errs[node] = torchrun(t, []string{testToken}, "--nnodes=2",
					fmt.Sprintf("--node_rank=%d", node),
					"--master_addr=127.0.0.1", fmt.Sprintf("--master_port=%d", port), "--nproc_per_node=2", "world")
			})
		}
		all.Wait()
		wantWorld(t, 4, max(statuses[0], statuses[1]), outs[0]+outs[1], errs[0]+errs[1])
	})
	t.Run("a dead rank", func(t *testing.T) {
		status, out, errs := torchrun(t, nil, append(alone, "kill", "1")...)
		if status == 0 || !strings.Contains(errs, "rank 1 (host ") {
			t.Errorf("status %d\n%s%s", status, out, errs)
		}
	})
}

// Three hosts with networks of their own, and the variables of a launcher that
// knows both: the ranks find each other over the hosts' addresses.
func TestRanksWithoutAgentsMeetAcrossHosts(t *testing.T) {
	t.Parallel() // it waits for logins
	b := testbed.New(t, 3)
	self, err := exec.LookPath("world")
	if err != nil {
		t.Fatal(err)
	}
	run := func(more string, args ...string) (statuses [6]int, out, errs string) {
		var all sync.WaitGroup
		var outs, errors [6]string
		for r := range 6 {
			words := append([]string{"env", fmt.Sprintf("RANK=%d", r), "WORLD_SIZE=6", "LOCAL_WORLD_SIZE=2",
				"MASTER_ADDR=" + b.Addr(1), "MASTER_PORT=29400", more, self}, args...)
			cmd := b.Command(r/2+1, words...)
			all.Go(func() { statuses[r], outs[r], errors[r] = runCommand(t, cmd.Path, cmd.Args[1:]...) })
		}
		all.Wait()
		return statuses, strings.Join(outs[:], ""), strings.Join(errors[:], "")
	}
	for _, way := range []string{"GOMPI_TOKEN=0123456789abcdef", "GOMPI_RDZV=file://" + t.TempDir()} {
		statuses, out, errs := run(way)
		wantWorld(t, 6, slices.Max(statuses[:]), out, errs)
		statuses, _, errs = run(way, "kill", "3")
		if want := [6]int{3, 3, 3, -1, 3, 3}; statuses != want || strings.Count(errs, "rank 3 (host ") != 5 {
			t.Errorf("%s: rank 3 was killed: statuses %v, want %v\n%s", way, statuses, want, errs)
		}
	}
	status, out, errs := runJob(t, "-rsh", b.RSH(), "-q", "-np", "6", "-H", "host1:2,host2:2,host3:2",
		compileMPI(t, "mpicc.mpich"))
	wantWorld(t, 6, status, out, errs)
}

// The ranks of the other hosts get no message that a host is gone: their own
// connections do, in the end.
func TestAHostThatIsCutOffEndsTheJobWithoutAgents(t *testing.T) {
	stress.Long(t, "connections take half a minute to give up")
	t.Parallel() // it waits most of the time
	b := testbed.New(t, 3)
	self, err := exec.LookPath("world")
	if err != nil {
		t.Fatal(err)
	}
	shared := t.TempDir()
	var all sync.WaitGroup
	var statuses [3]int
	var errs [3]string
	begun := make(chan struct{}, 3)
	for r := range 3 {
		cmd := b.Command(r+1, "env", fmt.Sprintf("RANK=%d", r), "WORLD_SIZE=3", "GOMPI_RDZV=file://"+shared, self,
			"run", "-1")
		var output strings.Builder
		cmd.Stderr = &output
		out := started(t, cmd)
		late := time.AfterFunc(2*time.Minute, func() { cmd.Process.Kill() })
		all.Go(func() {
			defer late.Stop()
			out.ReadString('\n')
			begun <- struct{}{}
			cmd.Wait() // the status tells
			statuses[r], errs[r] = cmd.ProcessState.ExitCode(), output.String()
		})
	}
	for range 3 {
		<-begun
	}
	b.Cut(3)
	start := time.Now()
	all.Wait()
	if statuses != [3]int{3, 3, 3} || !strings.Contains(errs[1], "rank 2 (host ") {
		t.Errorf("statuses %v after %v, want 3 for all\n%s", statuses, time.Since(start), strings.Join(errs[:], ""))
	}
	t.Logf("all had ended after %v", time.Since(start))
}
