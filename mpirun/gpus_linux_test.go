package mpirun

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gompi/cudaops/topo"
	"gompi/mpirun/internal/hostinfo"
	"gompi/mpirun/internal/testbed"
)

// topoProgram puts a gompi-topo that says h into a folder of its own, which it
// returns. It stands in for the real one, which needs GPUs to say anything.
func topoProgram(t *testing.T, h *topo.Host) string {
	t.Helper()
	data, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	return topoScript(t, "[ $# = 0 ] || exit 2\ncat <<'END'\n"+string(data)+"\nEND\n")
}

func topoScript(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	writeProgram(t, dir+"/gompi-topo", "#!/bin/sh\n"+text)
	return dir
}

// withDevices returns a host of GPUs each of which is near the CPUs of a list.
func withDevices(name string, near ...string) *topo.Host {
	h := &topo.Host{Driver: "570.86"}
	for i, cpus := range near {
		h.Devices = append(h.Devices, topo.Device{Index: i, UUID: fmt.Sprintf("GPU-%s-%d", name, i),
			Name: "NVIDIA H200", CPUs: cpus})
	}
	return h
}

// sees makes ranks print their variables about GPUs.
const sees = `echo $RANK sees ${CUDA_VISIBLE_DEVICES-all} ${CUDA_DEVICE_ORDER-in any order}`

// onGPUs runs gompirun here, where the gompi-topo of dir is, with variables.
func onGPUs(t *testing.T, dir string, vars []string, args ...string) (int, string, []string) {
	t.Helper()
	cmd := exec.Command("gompirun", args...)
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	cmd.Env = append(cmd.Env, vars...)
	return finish(t, cmd)
}

func TestRanksGetTheirGPUs(t *testing.T) {
	cut := withDevices("a", "", "", "", "")
	cut.Devices[1].MIG, cut.Devices[1].Slices = true, []topo.Slice{{UUID: "MIG-x"}, {UUID: "MIG-y"}}
	plain, exclusive := withDevices("a", "", "", "", ""), withDevices("a", "", "")
	exclusive.Devices[1].Mode = topo.ExclusiveProcess
	const inOrder = " PCI_BUS_ID"
	for _, tt := range []struct {
		name   string
		host   *topo.Host
		vars   string
		args   string
		status int
		out    []string // output of each rank, or nothing
		output string   // a line of stderr, as a pattern
	}{
		{"without a word", plain, "", "-np 1", 0, []string{"all in any order"}, "^$"},
		{"one each", plain, "", "-np 3 -gpus-per-rank 1", 0, []string{"0" + inOrder, "1" + inOrder, "2" + inOrder}, ""},
		{"as many ranks as it makes sense", plain, "", "-gpus-per-rank 2", 0,
			[]string{"0,1" + inOrder, "2,3" + inOrder}, ""},
		{"hydra's word", plain, "", "-np 1 -gpus-per-proc 3", 0, []string{"0,1,2" + inOrder}, ""},
		{"shared by neighbours", plain, "CUDA_VISIBLE_DEVICES=2,GPU-a-0", "-np 4 -gpus-per-rank 1", 0,
			[]string{"2" + inOrder, "2" + inOrder, "GPU-a-0" + inOrder, "GPU-a-0" + inOrder}, ""},
		{"slices", cut, "", "-np 3 -gpus-per-rank 1", 0,
			[]string{"0" + inOrder, "MIG-x" + inOrder, "MIG-y" + inOrder}, ""},
		{"slices by name", cut, "CUDA_VISIBLE_DEVICES=MIG-y,MIG-x", "-np 2 -gpus-per-rank 1", 0,
			[]string{"MIG-y" + inOrder, "MIG-x" + inOrder}, ""},
		{"counted", plain, "CUDA_VISIBLE_DEVICES=0,3,1", "-nproc-per-node gpu", 0,
			[]string{"0,3,1 in any order", "0,3,1 in any order", "0,3,1 in any order"}, ""},
		{"counted, with -x", plain, "CUDA_VISIBLE_DEVICES=0",
			"-nproc-per-node auto -x CUDA_VISIBLE_DEVICES=3,2 -gpus-per-rank 1", 0,
			[]string{"3" + inOrder, "2" + inOrder}, ""},
		{"near, all are seen", plain, "", "-np 1 -bind-to gpu", 0, []string{"0,1,2,3" + inOrder},
			"-bind-to gpu leaves ranks unbound: localhost does not tell"},
		{"up to one that is not there", plain, "CUDA_VISIBLE_DEVICES=1,9,0", "-np 2 -gpus-per-rank 1", 0,
			[]string{"1" + inOrder, "1" + inOrder},
			"^gompirun: localhost: of the 3 GPUs in CUDA_VISIBLE_DEVICES=1,9,0 there are 1,"},
		{"exclusive", exclusive, "", "-np 4 -gpus-per-rank 1", 0,
			[]string{"0" + inOrder, "0" + inOrder, "1" + inOrder, "1" + inOrder},
			`^gompirun: ranks share GPUs in EXCLUSIVE_PROCESS mode, .*: localhost \(gpu 1\); nvidia-smi -c DEFAULT`},
		{"too few", plain, "", "-np 3 -gpus-per-rank 2", statusFailed, nil,
			"^gompirun: -gpus-per-rank 2: localhost has 4 GPUs for 3 ranks: want fewer"},
		{"none to be seen", plain, "CUDA_VISIBLE_DEVICES=", "-np 1 -gpus-per-rank 1", statusFailed, nil,
			"localhost has 0 GPUs for 1 rank"},
		{"none to count", plain, "CUDA_VISIBLE_DEVICES=-1", "-nproc-per-node gpu", statusFailed, nil,
			"localhost has no NVIDIA GPU"},
		{"two slices", cut, "", "-np 1 -gpus-per-rank 2", statusFailed, nil, "a process can use one MIG slice only"},
		{"lost", &topo.Host{Devices: plain.Devices[1:],
			Warnings: []string{"GPU 0 is left out: it has fallen off the bus"}}, "", "-np 2 -gpus-per-rank 1", 0,
			[]string{"GPU-a-1" + inOrder, "GPU-a-2" + inOrder}, "^gompirun: localhost: GPU 0 is left out"},
		{"no library", &topo.Host{Trouble: "NVML: no library"}, "", "-np 1 -gpus-per-rank 1", statusFailed, nil,
			"^gompirun: localhost: no GPU is known: NVML: no library$"},
		{"no library, and no need of one", &topo.Host{Trouble: "NVML: no library"}, "", "-np 1 -v -nproc-per-node auto",
			0, []string{"all in any order"},
			"^gompirun: localhost: of GPUs only what the kernel tells is known: NVML: no library$"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			vars := []string{tt.vars}
			if tt.vars == "" {
				vars = nil
			}
			status, out, output := onGPUs(t, topoProgram(t, tt.host), vars,
				append(strings.Fields(tt.args), "sh", "-c", sees)...)
			want := ""
			for i, line := range tt.out {
				want += fmt.Sprintf("%d sees %s\n", i, line)
			}
			if status != tt.status || sorted(out) != sorted(want) {
				t.Errorf("status %d, want %d, and\n%swant\n%s\n%s", status, tt.status, out, want,
					strings.Join(output, "\n"))
			}
			matches(t, tt.args, output, tt.output)
		})
	}
}

func TestLocalRanksCanBeVirtual(t *testing.T) {
	args := []string{"-q", "--standalone", "--nproc-per-node", "2", "--virtual-local-rank", "sh", "-c",
		`echo $RANK on $LOCAL_RANK sees $CUDA_VISIBLE_DEVICES, locally $GOMPI_LOCAL_RANK`}
	status, out, output := onGPUs(t, topoProgram(t, withDevices("a", "", "")), nil, args...)
	if want := "0 on 0 sees 0, locally 0\n1 on 0 sees 1, locally 1\n"; status != 0 || sorted(out) != sorted(want) {
		t.Errorf("status %d:\n%swant\n%s%q", status, out, want, output)
	}
}

func TestProgramsThatSeeDifferentGPUsAreNotGivenSome(t *testing.T) {
	dir := topoProgram(t, withDevices("a", "", ""))
	args := []string{"-gpus-per-rank", "1", "-np", "1", "-x", "CUDA_VISIBLE_DEVICES=0", "true", ":", "-np", "1", "-x",
		"CUDA_VISIBLE_DEVICES=1", "true"}
	status, _, output := onGPUs(t, dir, nil, args...)
	if status != statusFailed {
		t.Errorf("status %d, want %d", status, statusFailed)
	}
	matches(t, "two values", output, "^gompirun: -x CUDA_VISIBLE_DEVICES=0 for one program and 1 for another: want one value")
	if status, _, output := onGPUs(t, dir, nil, args[2:]...); status != 0 {
		t.Errorf("without -gpus-per-rank: status %d: %q", status, output)
	}
}

// A failing gompi-topo costs its own facts, and nothing else.
func TestAGompiTopoThatFails(t *testing.T) {
	for _, tt := range []struct{ script, want string }{
		{"echo oh >&2; echo no symbol >&2; exit 127", "gompi-topo: exit status 127: no symbol$"},
		{"echo GPUs", `gompi-topo: "GPUs`},
		{"kill -9 $$", "gompi-topo: signal: killed$"},
	} {
		status, out, output := onGPUs(t, topoScript(t, tt.script+"\n"), nil, "-v", "-np", "2", "-bind-to", "gpu",
			"sh", "-c", sees)
		if status != 0 || strings.Count(out, "sees all in any order") != 2 {
			t.Errorf("%s: status %d: %s%q", tt.script, status, out, output)
		}
		matches(t, tt.script, output, "^gompirun: localhost: no GPU is known: .*"+tt.want,
			"leaves ranks unbound: localhost has no GPU")
	}
	cmd := exec.Command("gompirun", "-v", "-np", "1", "-report-bindings", "true")
	status, _, output := finish(t, cmd)
	if status != 0 {
		t.Errorf("status %d", status)
	}
	if _, err := exec.LookPath("gompi-topo"); err != nil {
		matches(t, "none", output, "^gompirun: localhost: .*: gompi-topo is not beside gompirun, nor in PATH$")
	}
}

// Whoever waits for a driver that does not answer is not kept.
func TestAHangingGompiTopoCanBeInterrupted(t *testing.T) {
	t.Parallel()
	dir := topoScript(t, "echo $$ >"+"$0.pid.new && mv $0.pid.new $0.pid\nexec sleep 1000\n")
	cmd := exec.Command("gompirun", "-np", "1", "-gpus-per-rank", "1", "true")
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := 0
	eventually(t, "gompi-topo to start", func() bool {
		text, err := os.ReadFile(dir + "/gompi-topo.pid")
		if err != nil {
			return false
		}
		_, err = fmt.Sscan(string(text), &pid)
		return err == nil
	})
	begun := time.Now()
	cmd.Process.Signal(syscall.SIGINT)
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 130 {
		t.Errorf("%v, want status 130", err)
	}
	if took := time.Since(begun); took > soon {
		t.Errorf("Ctrl-C took %v", took)
	}
	eventually(t, "gompi-topo to end", func() bool { return syscall.Kill(pid, 0) != nil })
}

// eventually waits until there is true.
func eventually(t *testing.T, what string, there func() bool) {
	t.Helper()
	for deadline := time.Now().Add(soon); !there(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// Each host tells of its own GPUs, and its ranks are bound near them.
func TestGPUsOfSeveralHosts(t *testing.T) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	var cpus []string
	for c := range len(set) * 64 {
		if set.IsSet(c) {
			cpus = append(cpus, fmt.Sprint(c))
		}
	}
	if len(cpus) < 2 {
		t.Skip("needs two CPUs")
	}
	a, z := cpus[0], cpus[len(cpus)-1]
	paths := map[int]string{1: topoProgram(t, withDevices("a", z, a)), 2: topoProgram(t, withDevices("b", a, a, a, a)),
		3: t.TempDir()}
	b := testbed.Make(t, testbed.Config{Hosts: 3, SSHD: func(i int) string {
		return "SetEnv PATH=" + paths[i] + ":/usr/bin:/bin"
	}})
	const script = sees + `; grep Cpus_allowed_list /proc/self/status`
	status, out, output := remotely(t, b, "-tag-output", "-report-bindings", "-display-map", "-gpus-per-rank", "1",
		"-bind-to", "gpu", "-H", "host1:2", "sh", "-c", script)
	if status != 0 {
		t.Errorf("status %d", status)
	}
	lines := strings.Split(out, "\n")
	matches(t, "ranks", lines, `^\[0\]<stdout>: ?0 sees 0 PCI_BUS_ID$`, `^\[1\]<stdout>: ?1 sees 1 PCI_BUS_ID$`,
		`^\[0\]<stdout>: ?Cpus_allowed_list:\s+`+z+`$`, `^\[1\]<stdout>: ?Cpus_allowed_list:\s+`+a+`$`)
	matches(t, "said", output, `^host1: 2 ranks on 2 slots, .*2 GPUs, by ssh$`,
		`^  rank 0  local 0  cpus `+z+`, gpu 0  sh$`,
		`^gompirun: rank 1 on host1: bound to cpus `+a+`, gpu 1$`)

	status, out, output = remotely(t, b, "-np", "5", "-gpus-per-rank", "1", "-H", "host1:2,host2:3", "sh", "-c", sees)
	if want := "0 sees 0 PCI_BUS_ID\n1 sees 1 PCI_BUS_ID\n2 sees 0 PCI_BUS_ID\n3 sees 1 PCI_BUS_ID\n4 sees 2 PCI_BUS_ID\n"; status != 0 || sorted(out) != sorted(want) {
		t.Errorf("status %d: %swant %s%q", status, out, want, output)
	}

	// The launcher's variable holds where a host has none of its own.
	t.Setenv("CUDA_VISIBLE_DEVICES", "1,0")
	status, out, output = remotely(t, b, "-nproc-per-node", "gpu", "-gpus-per-rank", "1", "-H", "host1:2,host2:4",
		"sh", "-c", sees)
	if want := "0 sees 1 PCI_BUS_ID\n1 sees 0 PCI_BUS_ID\n2 sees 1 PCI_BUS_ID\n3 sees 0 PCI_BUS_ID\n"; status != 0 ||
		sorted(out) != sorted(want) {
		t.Errorf("status %d: %swant %s%q", status, out, want, output)
	}
	os.Unsetenv("CUDA_VISIBLE_DEVICES") // until Setenv's cleanup

	// Every host that lacks GPUs is named, with the known facts.
	status, _, output = remotely(t, b, "-gpus-per-rank", "2", "-H", "host1:2,host2:2,host3:1", "true")
	if status != statusFailed {
		t.Errorf("status %d, want %d", status, statusFailed)
	}
	refused := `^gompirun: -gpus-per-rank 2: host1 has 2 GPUs for 2 ranks, host3 has 0 GPUs for 1 rank: want fewer`
	if kernel, _ := filepath.Glob("/proc/driver/nvidia/gpus/*"); kernel == nil {
		matches(t, "refusal", output, refused,
			`^gompirun: host3: no GPU is known: gompi-topo is not beside gompirun, nor in PATH$`)
	}

	status, lines = examineBed(t, b, "-H", "host1,host2,host3")
	if status != 0 {
		t.Errorf("doctor: status %d", status)
	}
	matches(t, "doctor", lines, `^host1 .* 2, driver 570\.86 `, `^host1 +1 +NVIDIA H200 +- .* `+a+` +`,
		`^host2 +3 +NVIDIA H200 `)
	b.AwaitEmpty(soon)
}

// Agents ask gompi-topo for top, again and again, where NVML is, and nowhere else.
func TestTopShowsTheGPUsOfHosts(t *testing.T) {
	h, lib, busy := withDevices("a", "", ""), t.TempDir(), 87
	h.Devices[1].Busy, h.Devices[1].Used, h.Devices[1].Memory = &busy, 40e9, 80e9
	dir := topoProgram(t, h)
	top := func(vars ...string) string {
		status, out, output := onGPUs(t, dir, vars, "-np", "1", "sh", "-c",
			"gompirun top -once -interval 50ms $GOMPI_JOB_ID; gompirun ps -json $GOMPI_JOB_ID")
		if status != 0 || !strings.Contains(out, "DOING") || !strings.Contains(out, `"ranks": [`) {
			t.Errorf("status %d: %s%q", status, out, output)
		}
		return out
	}
	if hostinfo.Library("libnvidia-ml.so.1") == "" {
		if out := top(); strings.Contains(out, "NVIDIA") {
			t.Errorf("without NVML:\n%s", out)
		}
	}
	if err := os.WriteFile(lib+"/libnvidia-ml.so.1", nil, 0o666); err != nil {
		t.Fatal(err)
	}
	vars := "LD_LIBRARY_PATH=" + lib
	matches(t, "GPUs", strings.Split(top(vars), "\n"), `^HOST +GPU +NAME +BUSY +MEMORY +OF$`,
		`^localhost +0 +NVIDIA H200 +- +0 B +0 B$`, `^localhost +1 +NVIDIA H200 +87 % +40 GB +80 GB$`,
		`"busy": 87,$`)
	dir = topoScript(t, "exit 1\n")
	if out := top(vars); strings.Contains(out, "NVIDIA") {
		t.Errorf("of a gompi-topo that fails:\n%s", out)
	}
}

// Nodes that are started one by one have each their own variable and number.
func TestNodesGiveTheirOwnGPUs(t *testing.T) {
	at, path := place(t), "PATH="+topoProgram(t, withDevices("n", "", "", "", ""))+":"+os.Getenv("PATH")
	start := func(rank, visible string) *node {
		return startNode(t, []string{testToken, path, "CUDA_VISIBLE_DEVICES=" + visible}, "-q", "-nnodes", "2",
			"-node-rank", rank, "-rdzv-endpoint", at,
			"-nproc-per-node", "gpu", "-gpus-per-rank", "1", "sh", "-c", sees)
	}
	one, zero := start("1", "3,2,0"), start("0", "1")
	zero.wants(t, 0)
	one.wants(t, 0)
	want := "0 sees 1 PCI_BUS_ID\n1 sees 3 PCI_BUS_ID\n2 sees 2 PCI_BUS_ID\n3 sees 0 PCI_BUS_ID\n"
	if out := zero.out.String(); sorted(out) != sorted(want) {
		t.Errorf("%swant\n%s", out, want)
	}
}
