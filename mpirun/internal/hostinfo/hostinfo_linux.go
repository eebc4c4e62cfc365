// Package hostinfo describes this host: its names and addresses, processors, memory domains and
// GPUs. For gompirun doctor it also finds possible causes of failures, and the reachable hosts.
package hostinfo

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/env"
	"gompi/internal/machine"
	"gompi/internal/sockets"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/plan"
)

// Host describes this host, without its GPUs.
func Host() *ctl.Hello {
	h := &ctl.Hello{Version: ctl.Version, Host: name(), Network: sockets.Network()}
	if id, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		h.Machine = strings.TrimSpace(string(id))
	}
	h.Launcher, h.Address = sshEnds(os.Getenv("SSH_CONNECTION"))
	if h.Launcher == "" {
		h.Launcher = os.Getenv("SLURM_LAUNCH_NODE_IPADDR") // of srun: this agent is a task of its step
	}
	if admitted, err := sockets.ParseFilter(os.Getenv(env.Iface)); err == nil {
		h.Addresses, _ = sockets.LocalAddresses(admitted) // a host without any is reached by its name
	}
	h.Cores, h.Numa = grouped(CPUs(0), core), domains()
	h.L3, h.Packages = grouped(CPUs(0), l3), grouped(CPUs(0), pkg)
	h.Quota = machine.WholeCPUs("/")
	return h
}

// sshEnds returns the addresses of client and server in SSH_CONNECTION, whose fields are client,
// client's port, server, server's port.
func sshEnds(connection string) (client, server string) {
	if f := strings.Fields(connection); len(f) == 4 {
		return f[0], f[2]
	}
	return "", ""
}

// CPUs returns the CPUs that a process may use, in ascending order; 0 is this thread.
func CPUs(pid int) []int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(pid, &set) != nil {
		return nil
	}
	var cpus []int
	for c := range len(set) * 64 {
		if set.IsSet(c) {
			cpus = append(cpus, c)
		}
	}
	return cpus
}

// domains returns the CPUs of each memory domain.
func domains() [][]int {
	const dir = "/sys/devices/system/node"
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var found [][]int
	for _, e := range entries {
		if _, err := strconv.Atoi(strings.TrimPrefix(e.Name(), "node")); err != nil {
			continue
		}
		if list, err := os.ReadFile(dir + "/" + e.Name() + "/cpulist"); err == nil && parseCPUs(list) != nil {
			found = append(found, parseCPUs(list))
		}
	}
	return found
}

// sysCPU has a folder for each CPU.
const sysCPU = "/sys/devices/system/cpu/cpu%d/"

// core returns the CPUs of a CPU's core, the CPU alone if they are not known.
func core(cpu int) string {
	list, _ := os.ReadFile(fmt.Sprintf(sysCPU+"topology/thread_siblings_list", cpu))
	return cmp.Or(string(list), fmt.Sprint(cpu))
}

// pkg returns the processor package that a CPU is in, "" if not known.
func pkg(cpu int) string {
	id, _ := os.ReadFile(fmt.Sprintf(sysCPU+"topology/physical_package_id", cpu))
	return string(id)
}

// l3 returns the CPUs that share a CPU's level 3 cache, "" if not known.
func l3(cpu int) string {
	levels, _ := filepath.Glob(fmt.Sprintf(sysCPU+"cache/index*/level", cpu))
	for _, file := range levels {
		if level, _ := os.ReadFile(file); strings.TrimSpace(string(level)) == "3" {
			list, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "shared_cpu_list"))
			return string(list)
		}
	}
	return ""
}

// grouped groups CPUs by the part of the host that they are in, nil if a CPU's part is unknown.
func grouped(cpus []int, part func(cpu int) string) [][]int {
	at := map[string]int{}
	var found [][]int
	for _, c := range cpus {
		id := part(c)
		if id == "" {
			return nil
		}
		i, ok := at[id]
		if !ok {
			i = len(found)
			at[id], found = i, append(found, nil)
		}
		found[i] = append(found[i], c)
	}
	return found
}

// parseCPUs reads a CPU list of the kernel, nil if the text is none.
func parseCPUs(list []byte) []int {
	cpus, _ := plan.ParseCPUs(strings.TrimSpace(string(list)))
	return cpus
}

// name returns this host's own name.
func name() string {
	name, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	return name
}

// CopyRate returns the bytes that one processor copies in a second, from memory to memory. It
// takes 20 ms.
func CopyRate() int64 {
	const n = 32 << 20 // more than caches hold
	from, to := make([]byte, n), make([]byte, n)
	best := time.Duration(1<<63 - 1)
	for i := range 3 {
		begin := time.Now()
		copy(to, from)
		if took := time.Since(begin); i > 0 { // the first copy faults the pages in
			best = min(best, max(took, 1))
		}
	}
	return int64(float64(n) / best.Seconds())
}
