package testbed

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gompi/internal/stress"
)

// The resources that each node claims.
const (
	CPUs = 4
	GPUs = 2
)

// slurmStartTime bounds the time of a daemon to answer.
const slurmStartTime = 30 * time.Second

// A Slurm is a running Slurm. Its folder and ports are its own, so that several can run at once.
//
//	slurm := testbed.NewSlurm(t, 3) // nodes n1, n2 and n3; skips where that cannot be
//	out, err := slurm.Command("srun", "-N3", "-n6", "hostname").CombinedOutput()
//
// A process with the environment Env, such as a Command, uses this Slurm. Each node claims four
// processors and two GPUs (/dev/null is behind them), whatever this machine has, and is in the
// partitions all and gpu. It needs root, and the packages slurm-wlm and munge.
type Slurm struct {
	Dir   string
	Nodes []string

	t       testing.TB
	env     []string
	daemons []*daemon
}

// A daemon is one process of the bed.
type daemon struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{} // closed when it has ended
}

// NewSlurm starts a Slurm of n nodes. Slurm ends, with all its jobs, when the test has ended.
func NewSlurm(t testing.TB, n int) *Slurm {
	t.Helper()
	stress.Slow(t, "it starts Slurm")
	if os.Geteuid() != 0 {
		t.Skip("a Slurm for tests needs root")
	}
	for _, prog := range []string{"munged", "slurmctld", "slurmd", "srun"} {
		if _, err := exec.LookPath(prog); err != nil {
			t.Skipf("a Slurm for tests needs the packages slurm-wlm and munge: no %s here", prog)
		}
	}
	// Not t.TempDir: the socket's name must be short.
	dir, err := os.MkdirTemp("", "slurm")
	if err != nil {
		t.Fatal(err)
	}
	b := &Slurm{Dir: dir, t: t, env: append(cleanEnv(), "SLURM_CONF="+dir+"/slurm.conf")}
	t.Cleanup(b.close)
	for i := range n {
		b.Nodes = append(b.Nodes, fmt.Sprintf("n%d", i+1))
	}
	if err := b.configure(); err != nil {
		t.Fatal(err)
	}
	if err := b.start(); err != nil {
		t.Fatal(err)
	}
	return b
}

// cleanEnv returns the environment without another Slurm's variables.
func cleanEnv() []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "SLURM") && !strings.HasPrefix(kv, "SBATCH") && !strings.HasPrefix(kv, "SALLOC") {
			env = append(env, kv)
		}
	}
	return env
}

// Env returns the environment of processes that use the bed.
func (b *Slurm) Env() []string { return append([]string(nil), b.env...) }

// Command returns a command that uses the bed.
func (b *Slurm) Command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Env = b.Env()
	return cmd
}

// configure writes the files of the daemons.
func (b *Slurm) configure() error {
	ports := FreePorts(b.t, len(b.Nodes)+1)
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	host, _, _ = strings.Cut(host, ".")
	var conf strings.Builder
	fmt.Fprintf(&conf, `ClusterName=bed
SlurmctldHost=%[2]s(127.0.0.1)
SlurmctldPort=%[3]d
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=%[1]s/munge.socket
CredType=cred/munge
StateSaveLocation=%[1]s/state
SlurmdSpoolDir=%[1]s/spool.%%n
SlurmctldPidFile=%[1]s/slurmctld.pid
SlurmdPidFile=%[1]s/slurmd.%%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
TmpFS=%[1]s/spool.%%n
ReturnToService=2
SlurmdParameters=config_overrides
SchedulerType=sched/backfill
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
GresTypes=gpu
KillWait=5
InactiveLimit=0
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
`, b.Dir, host, ports[0])
	for i, node := range b.Nodes {
		fmt.Fprintf(&conf, "NodeName=%s NodeHostname=%s NodeAddr=127.0.0.1 Port=%d CPUs=%d Gres=gpu:%d Feature=p40,gmem24G State=UNKNOWN\n",
			node, host, ports[i+1], CPUs, GPUs)
	}
	for name, isDefault := range map[string]string{"all": "YES", "gpu": "NO"} {
		fmt.Fprintf(&conf, "PartitionName=%s Nodes=%s Default=%s MaxTime=INFINITE State=UP OverSubscribe=YES\n", name,
			strings.Join(b.Nodes, ","), isDefault)
	}
	for i := range GPUs {
		file := fmt.Sprintf("%s/gpu%d", b.Dir, i)
		if err := os.Symlink("/dev/null", file); err != nil {
			return err
		}
	}
	for name, data := range map[string]string{
		"slurm.conf": conf.String(),
		"gres.conf":  fmt.Sprintf("Name=gpu File=%s/gpu[0-%d]\n", b.Dir, GPUs-1),
		"munge.key":  strings.Repeat("a key that guards nothing but a test. ", 8),
	} {
		if err := os.WriteFile(filepath.Join(b.Dir, name), []byte(data), 0o600); err != nil {
			return err
		}
	}
	// Jobs may belong to other users, who must be able to read these files.
	return errors.Join(os.Chmod(b.Dir, 0o755), os.Chmod(b.Dir+"/slurm.conf", 0o644),
		os.Chmod(b.Dir+"/gres.conf", 0o644), os.Mkdir(b.Dir+"/state", 0o700))
}

// start starts the daemons and waits until every node is idle.
func (b *Slurm) start() error {
	err := b.daemon("munged", "--foreground", "--force", "--key-file="+b.Dir+"/munge.key",
		"--socket="+b.Dir+"/munge.socket",
		"--pid-file="+b.Dir+"/munged.pid", "--log-file="+b.Dir+"/munged.own.log", "--seed-file="+b.Dir+"/munged.seed")
	if err != nil {
		return err
	}
	if err := b.until("munged", func() bool { return exists(b.Dir + "/munge.socket") }); err != nil {
		return err
	}
	if err := b.daemon("slurmctld", "-D", "-c"); err != nil {
		return err
	}
	for _, node := range b.Nodes {
		if err := b.daemon("slurmd", "-D", "-N", node); err != nil {
			return err
		}
	}
	return b.until("every node to be idle", func() bool {
		out, err := b.Command("sinfo", "-h", "-N", "-p", "all", "-o", "%T").Output()
		return err == nil && string(out) == strings.Repeat("idle\n", len(b.Nodes))
	})
}

// daemon starts one of the bed's processes.
func (b *Slurm) daemon(name string, args ...string) error {
	log, err := os.Create(fmt.Sprintf("%s/log.%d.%s", b.Dir, len(b.daemons), name))
	if err != nil {
		return err
	}
	defer log.Close()
	d := &daemon{cmd: b.Command(name, args...), log: log.Name(), done: make(chan struct{})}
	d.cmd.Stdout, d.cmd.Stderr = log, log
	if err := d.cmd.Start(); err != nil {
		return err
	}
	b.daemons = append(b.daemons, d)
	go func() { // until the daemon has ended, by close
		d.cmd.Wait()
		close(d.done)
	}()
	return nil
}

// until polls for a state of the bed, because Slurm reports no events.
func (b *Slurm) until(what string, reached func() bool) error {
	for deadline := time.Now().Add(slurmStartTime); !reached(); time.Sleep(20 * time.Millisecond) {
		for _, d := range b.daemons {
			select {
			case <-d.done:
				return fmt.Errorf("testbed: %v ended: %s", d.cmd.Args, tail(d.log))
			default:
			}
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("testbed: waited %v for %s: %s", slurmStartTime, what,
				tail(b.daemons[len(b.daemons)-1].log))
		}
	}
	return nil
}

// AwaitNoJobs waits until no job is left. The result is the jobs left at the time limit, "" for
// none.
func (b *Slurm) AwaitNoJobs(limit time.Duration) string {
	for deadline := time.Now().Add(limit); ; time.Sleep(20 * time.Millisecond) {
		out, err := b.Command("squeue", "-h").CombinedOutput()
		if left := string(bytes.TrimSpace(out)); err == nil && left == "" || time.Now().After(deadline) {
			return left
		}
	}
}

// close ends jobs and daemons and removes the folder.
func (b *Slurm) close() {
	if len(b.daemons) > 1 {
		b.Command("scancel", "--me").Run() // there may be none
		if left := b.AwaitNoJobs(10 * time.Second); left != "" {
			b.t.Logf("testbed: jobs that do not end: %s", left)
		}
	}
	for i := len(b.daemons) - 1; i >= 0; i-- {
		d := b.daemons[i]
		d.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-d.done:
		case <-time.After(5 * time.Second):
			d.cmd.Process.Kill()
			<-d.done
		}
	}
	b.killSteps()
	os.RemoveAll(b.Dir)
}

// killSteps kills slurmstepd processes that have not noticed the end.
func (b *Slurm) killSteps() {
	procs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return
	}
	for _, file := range procs {
		env, err := os.ReadFile(file)
		comm, _ := os.ReadFile(filepath.Dir(file) + "/comm")
		if err != nil || !bytes.HasPrefix(comm, []byte("slurmstepd")) ||
			!bytes.Contains(env, []byte("SLURM_CONF="+b.Dir+"/")) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// tail returns the end of a file.
func tail(file string) string {
	data, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	return string(data[max(0, len(data)-2000):])
}
