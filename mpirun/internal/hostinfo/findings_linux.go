package hostinfo

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"gompi/internal/machine"
	"gompi/mpirun/internal/ctl"
)

// examine fills in the findings beyond the network.
func examine(f *ctl.Findings) {
	f.MilliCPUs = milliCPUs("/")
	memory := machine.Numbers("/proc/meminfo") // in KiB
	f.Memory, f.MemoryFree = memory["MemTotal:"]<<10, memory["MemAvailable:"]<<10
	f.MemoryLimit = memoryLimit("/", f.Memory)
	var fs unix.Statfs_t
	if unix.Statfs("/dev/shm", &fs) == nil {
		f.Shm = int64(fs.Blocks) * fs.Bsize
	}
	_, f.Memlock = limits(unix.RLIMIT_MEMLOCK) // agents raise the limit of their ranks to this
	f.Files, f.FilesHard = limits(unix.RLIMIT_NOFILE)
	f.RDMA = rdmaPorts("/sys")
	f.UCX = Library("libucp.so.0")
	processor(f)
}

// text returns the content of a file, "" if there is none.
func text(file string) string {
	b, _ := os.ReadFile(file)
	return string(b)
}

// processor finds this machine's settings, and the limits of the kernel's copies between ranks.
func processor(f *ctl.Findings) {
	f.Processor, f.Tuning = machine.Processor(), machine.Tuning()
	if !mayTrace() {
		fmt.Sscan(text("/proc/sys/kernel/yama/ptrace_scope"), &f.PtraceScope)
	}
}

// mayTrace reports whether this process, and so a rank, may trace all others.
func mayTrace() bool {
	var caps [2]unix.CapUserData
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	return unix.Capget(&header, &caps[0]) == nil && caps[0].Effective&(1<<unix.CAP_SYS_PTRACE) != 0
}

func rdmaPorts(sys string) (ports []ctl.RDMAPort) {
	for _, p := range machine.Ports(sys) {
		ports = append(ports, ctl.RDMAPort{Name: p.Name(), State: p.State, Link: p.Link, Rate: p.Rate, GID: p.GID,
			Domain: p.Node})
	}
	return ports
}

// limits returns the soft and the hard limit of a resource.
func limits(resource int) (soft, hard int64) {
	var r unix.Rlimit
	if unix.Getrlimit(resource, &r) != nil {
		return ctl.Unlimited, ctl.Unlimited
	}
	number := func(v uint64) int64 {
		if v > 1<<62 { // RLIM_INFINITY is the largest of all
			return ctl.Unlimited
		}
		return int64(v)
	}
	return number(r.Cur), number(r.Max)
}

// milliCPUs returns the processor time that the control groups grant.
func milliCPUs(root string) int {
	if cpus := machine.CPUs(root); cpus > 0 {
		return int(1000 * cpus)
	}
	return ctl.Unlimited
}

// memoryLimit returns the least limit of the control groups, Unlimited if that is not below the
// machine's memory.
func memoryLimit(root string, total int64) int64 {
	least := total
	for g := range machine.ControlGroups(root, "memory") {
		if n, ok := g.Number("memory.max", "memory.limit_in_bytes"); ok && n >= 0 {
			least = min(least, n)
		}
	}
	if least == total {
		return ctl.Unlimited
	}
	return least
}

// Library returns the path of a shared library, only its name if just the linker's cache has the
// library, "" if there is none.
func Library(name string) string {
	dirs := strings.Split(os.Getenv("LD_LIBRARY_PATH"), ":")
	machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	dirs = append(dirs, "/usr/lib/"+machine+"-linux-gnu", "/lib/"+machine+"-linux-gnu", "/usr/lib64", "/usr/lib",
		"/usr/local/lib", "/opt/ucx/lib")
	for _, dir := range dirs {
		if dir == "" {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return filepath.Join(dir, name)
		}
	}
	if cache, err := os.ReadFile("/etc/ld.so.cache"); err == nil && bytes.Contains(cache, []byte(name+"\x00")) {
		return name
	}
	return ""
}

// interfaces returns the interfaces that are up, without loopback.
func interfaces() []ctl.Interface {
	all, _ := net.Interfaces() // without them there are no addresses either, which is reported
	var list []ctl.Interface
	for _, i := range all {
		if i.Flags&net.FlagUp == 0 || i.Flags&net.FlagLoopback != 0 {
			continue
		}
		n := ctl.Interface{Name: i.Name, MTU: i.MTU}
		addrs, _ := i.Addrs()
		for _, a := range addrs {
			n.Addresses = append(n.Addresses, a.String())
		}
		if speed, err := strconv.Atoi(strings.TrimSpace(text("/sys/class/net/" + i.Name +
			"/speed"))); err == nil && speed > 0 {
			n.Megabits = speed
		}
		list = append(list, n)
	}
	return list
}
