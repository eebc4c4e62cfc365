package testbed

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gompi/internal/stress"
)

// timeout bounds every wait of this package.
const timeout = 20 * time.Second

// A Config describes the hosts to make.
type Config struct {
	Hosts int

	// SSHD returns lines for the beginning of sshd's configuration on a host, numbered from 1. It
	// may be nil.
	SSHD func(host int) string

	// Private are existing folders that every host has for itself, empty at first. The folders of
	// the test and all others are shared.
	Private []string

	// Setup returns a shell command that prepares a host, numbered from 1, before any login. Its
	// mounts are the host's own. It may be nil.
	Setup func(host int) string

	// Rate is the bandwidth of every host's link, in each direction: 100mbit, 1gbit. "" is the
	// processors' limit.
	Rate string
}

// A Bed is a number of hosts for a test to log in to, cut off and inspect. The hosts, numbered
// from 1, are called host1, host2 and so on, also among themselves.
type Bed struct {
	SSHConfig string // for ssh -F: the hosts by name, with the keys to log in

	t     testing.TB
	dir   string
	name  string // the beginning of all names of the system
	space string // network namespace of the bridge, and of programs that reach the hosts
	hosts []*host
}

// subnet is the common network of all beds, without the last number of addresses: no bed sees
// another's network.
const subnet = "10.100.0."

type host struct {
	space  string // network namespace
	port   string // of the bridge, in the bed's namespace
	silent bool
	script string // shell script that becomes sshd
	sshd   *exec.Cmd
	starts int           // how often sshd has been started
	done   chan struct{} // closed when sshd has ended
}

// beds numbers the beds of this process.
var beds atomic.Int32

// New makes n hosts and removes them, with all their processes, when the test ends. It skips the
// test if that is impossible.
func New(t testing.TB, n int) *Bed {
	t.Helper()
	return Make(t, Config{Hosts: n})
}

// Make makes the hosts that c describes, as New does.
func Make(t testing.TB, c Config) *Bed {
	t.Helper()
	need(t, c)
	b := &Bed{t: t, dir: t.TempDir(), name: fmt.Sprintf("%d.%d", os.Getpid(), beds.Add(1))}
	b.space = "gompi-" + b.name
	b.SSHConfig = filepath.Join(b.dir, "ssh_config")
	t.Cleanup(b.remove)
	if out, err := exec.Command("ip", "netns", "add", b.space).CombinedOutput(); err != nil {
		t.Skipf("hosts need the right to make a network: ip netns add: %v: %s", err, out)
	}
	// With an address of its own: otherwise it takes a port's, and forgets its neighbours.
	b.link("add", bridge, "up", "address", hardwareHere, "type", "bridge")
	b.ip("-n", b.space, "addr", "add", b.Here()+"/24", "dev", bridge)
	b.link("set", "lo", "up")
	b.makeKeys(c.Hosts)
	b.write("ssh", fmt.Sprintf("#!/bin/sh\ncase \"$SSH_CONNECTION\" in *' %s'*) exec ssh \"$@\" ;; esac\nexec ip netns exec %s ssh \"$@\"\n",
		subnet, b.space), 0o700)
	for i := range c.Hosts {
		b.connect(i + 1)
		b.limit(i+1, c.Rate)
		b.nameHosts(i+1, c.Hosts)
		b.configure(i+1, c)
		b.serve(i + 1)
	}
	b.acquaint(c.Hosts)
	for i := range c.Hosts {
		b.awaitServer(i + 1)
	}
	return b
}

// need skips the test if the hosts described by c cannot be made.
func need(t testing.TB, c Config) {
	t.Helper()
	stress.Slow(t, "it starts hosts")
	if os.Getuid() != 0 {
		t.Skip("hosts in network namespaces need root")
	}
	programs := map[string]string{
		"ip": "iproute2", "ssh": "openssh-client", "ssh-keygen": "openssh-client", sshd: "openssh-server",
	}
	if c.Rate != "" {
		programs["tc"] = "iproute2"
	}
	for program, pkg := range programs {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("hosts need %s (package %s)", program, pkg)
		}
	}
}

// sshd must be called by its full path.
const sshd = "/usr/sbin/sshd"

const bridge = "br0"

// Name returns the name of a host.
func (b *Bed) Name(i int) string { return fmt.Sprintf("host%d", i) }

// Addr returns the address of a host.
func (b *Bed) Addr(i int) string { return fmt.Sprintf("%s%d", subnet, i) }

// Here returns this machine's address on the hosts' network, which only processes started by
// Command on host 0 have.
func (b *Bed) Here() string { return subnet + "254" }

// RSH returns the login command: ssh with the bed's configuration, from a host or from this
// machine on the hosts' network.
func (b *Bed) RSH() string { return b.ssh() + " -F " + b.SSHConfig }

func (b *Bed) ssh() string { return filepath.Join(b.dir, "ssh") }

// Sent returns the bytes sent from this machine to the hosts, also by ssh. Messages between hosts
// do not count.
func (b *Bed) Sent() int {
	b.t.Helper()
	out, err := b.Command(0, "cat", "/sys/class/net/"+bridge+"/statistics/tx_bytes").Output()
	n, bad := strconv.Atoi(strings.TrimSpace(string(out)))
	if err = errors.Join(err, bad); err != nil {
		b.t.Fatal(err)
	}
	return n
}

// Command returns a command that runs on a host, started there without ssh. Host 0 is this
// machine with only the hosts' network.
func (b *Bed) Command(i int, args ...string) *exec.Cmd {
	space := b.space
	if i > 0 {
		space = b.hosts[i-1].space
	}
	return exec.Command("ip", append([]string{"netns", "exec", space}, args...)...)
}

// Put writes a program to a path on a host, through ssh, because only login sessions see the
// host's private folders.
func (b *Bed) Put(i int, path, text string) {
	b.t.Helper()
	cmd := exec.Command(b.ssh(), "-F", b.SSHConfig, b.Name(i), fmt.Sprintf("cat >'%[1]s' && chmod 755 '%[1]s'", path))
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		b.t.Fatalf("write %s on %s: %v: %s", path, b.Name(i), err, out)
	}
}

// Cut takes a host's network cable out.
func (b *Bed) Cut(i int) { b.link("set", b.hosts[i-1].port, "down") }

// Silence makes the network drop all packets from and to a host. To the host that looks like a
// network without traffic.
func (b *Bed) Silence(i int) {
	b.hosts[i-1].silent = true
	b.run("bridge", "-n", b.space, "link", "set", "dev", b.hosts[i-1].port, "state", "0")
}

// Mend undoes Cut and Silence.
func (b *Bed) Mend(i int) {
	h := b.hosts[i-1]
	b.link("set", h.port, "up")
	if h.silent { // the bridge itself restores ports that were down
		h.silent = false
		b.run("bridge", "-n", b.space, "link", "set", "dev", h.port, "state", "3")
	}
}

// A Process is a process on a host.
type Process struct {
	PID     int
	Command string
}

// Processes returns the processes on a host, without its sshd: sessions, their children, and
// leftovers.
func (b *Bed) Processes(i int) []Process {
	b.t.Helper()
	h := b.hosts[i-1]
	var found []Process
	for _, p := range inSpace(h.space) {
		if h.sshd == nil || p.PID != h.sshd.Process.Pid {
			found = append(found, p)
		}
	}
	return found
}

// AwaitEmpty waits until no process is left on any host. It fails the test after limit.
func (b *Bed) AwaitEmpty(limit time.Duration) {
	b.t.Helper()
	deadline := time.Now().Add(limit)
	for i := range b.hosts {
		for {
			left := slices.DeleteFunc(b.Processes(i+1), func(p Process) bool {
				// No user has logged in, and a cut-off host learns of the client's end only when its server
				// gives up.
				return strings.HasPrefix(p.Command, "sshd: [accepted]")
			})
			if len(left) == 0 {
				break
			}
			if time.Now().After(deadline) {
				b.t.Fatalf("left on %s after %v: %v", b.Name(i+1), limit, left)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
}

// Log returns the log of a host's sshd.
func (b *Bed) Log(i int) string {
	data, _ := os.ReadFile(b.file(i, "log"))
	return string(data)
}

func (b *Bed) file(i int, what string) string { return filepath.Join(b.dir, b.Name(i)+"."+what) }

func (b *Bed) write(name, text string, mode fs.FileMode) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), mode); err != nil {
		b.t.Fatal(err)
	}
}

// connect makes a host without any processes.
func (b *Bed) connect(i int) {
	b.t.Helper()
	h := &host{space: fmt.Sprintf("gompi-%s.%d", b.name, i), port: fmt.Sprintf("port%d", i)}
	b.ip("netns", "add", h.space)
	b.hosts = append(b.hosts, h)
	mac := hardware(i)
	b.link("add", h.port, "master", bridge, "up", "type", "veth", "peer", "name", "eth0", "address", mac,
		"netns", h.space)
	// A silent host must not answer, but must still be known.
	b.ip("-n", b.space, "neigh", "add", b.Addr(i), "lladdr", mac, "dev", bridge)
	b.ip("-n", h.space, "addr", "add", b.Addr(i)+"/24", "dev", "eth0")
	b.ip("-n", h.space, "link", "set", "eth0", "up")
	b.ip("-n", h.space, "link", "set", "lo", "up")
}

// A limited link passes burstTime's worth of data at once after a pause. Where hosts share
// processors the queue's timer is late, and a smaller burst leaves gaps (eight ranks on two
// processors, allreduce of 64 MiB at 1 Gbit/s: with 0.5, 1, 2 and 4 ms in 2.93, 1.07, 0.90 and
// 0.90 s). The queue behaves like a switch's port: data that would wait longer than queueTime is
// dropped, but at least queueBytes are kept. Otherwise slow links would drop packets when many
// hosts send to one, and TCP would wait for 200 ms.
const (
	burstTime  = 2e-3 // seconds
	queueTime  = 20e-3
	queueBytes = 512 << 10
	leastBurst = 2 * 1514 // frames
)

// limit limits a host's link to a rate in each direction, if there is one. Connections then use
// cubic, Linux's default, so that measurements do not depend on this machine's setting.
func (b *Bed) limit(i int, rate string) {
	b.t.Helper()
	if rate == "" {
		return
	}
	perSecond, err := parseRate(rate)
	if err != nil {
		b.t.Fatal(err)
	}
	burst := int(max(burstTime*perSecond, leastBurst))
	queue := burst + int(max(queueTime*perSecond, queueBytes))
	h := b.hosts[i-1]
	for _, end := range [][]string{{h.space, "eth0"}, {b.space, h.port}} {
		args := []string{"-n", end[0], "qdisc", "add", "dev", end[1], "root", "tbf", "rate", rate, "burst",
			strconv.Itoa(burst), "limit", strconv.Itoa(queue)}
		if out, err := exec.Command("tc", args...).CombinedOutput(); err != nil {
			b.t.Skipf("a link of %s needs the kernel's tbf: tc %s: %v: %s", rate, strings.Join(args, " "), err, out)
		}
	}
	b.ip("-n", h.space, "route", "change", subnet+"0/24", "dev", "eth0", "src", b.Addr(i), "congctl", "cubic")
}

// parseRate returns the bytes per second of a rate such as 1gbit.
func parseRate(rate string) (float64, error) {
	for unit, bytes := range map[string]float64{"kbit": 1e3 / 8, "mbit": 1e6 / 8, "gbit": 1e9 / 8} {
		if digits, ok := strings.CutSuffix(rate, unit); ok {
			if n, err := strconv.ParseFloat(digits, 64); err == nil && n > 0 {
				return n * bytes, nil
			}
		}
	}
	return 0, fmt.Errorf("rate %q: want a number with kbit, mbit or gbit, such as 100mbit", rate)
}

// names returns the folder of a host's replacements of files in /etc.
func (h *host) names() string { return "/etc/netns/" + h.space }

// nameHosts makes n hosts known to a host by name.
func (b *Bed) nameHosts(i, n int) {
	b.t.Helper()
	var hosts strings.Builder
	hosts.WriteString("127.0.0.1 localhost\n")
	for k := 1; k <= n; k++ {
		fmt.Fprintf(&hosts, "%s %s\n", b.Addr(k), b.Name(k))
	}
	dir := b.hosts[i-1].names()
	if err := errors.Join(os.MkdirAll(dir, 0o755),
		os.WriteFile(dir+"/hosts", []byte(hosts.String()), 0o644)); err != nil {
		b.t.Skipf("hosts need files that name them: %v", err)
	}
}

// remove ends all processes on the hosts, and removes the hosts.
func (b *Bed) remove() {
	for _, h := range b.hosts {
		b.empty(h.space)
		if h.sshd != nil {
			<-h.done
		}
		// A connection that was cut off keeps the namespace for a while.
		exec.Command("ip", "-n", b.space, "link", "del", h.port).Run() // it may never have been made
		b.ip("netns", "del", h.space)
		os.RemoveAll(h.names())
	}
	b.empty(b.space)
	exec.Command("ip", "-n", b.space, "link", "del", bridge).Run() // it may never have been made
	exec.Command("ip", "netns", "del", b.space).Run()
	if b.t.Failed() {
		for i := range b.hosts {
			b.t.Logf("sshd of %s, but for logins:\n%s", b.Name(i+1), usual.ReplaceAllString(b.Log(i+1), ""))
		}
	}
}

// empty kills all processes in a network namespace.
func (b *Bed) empty(space string) {
	for deadline := time.Now().Add(timeout); ; time.Sleep(2 * time.Millisecond) {
		left := inSpace(space)
		if len(left) == 0 {
			return
		}
		for _, p := range left {
			syscall.Kill(p.PID, syscall.SIGKILL)
		}
		if time.Now().After(deadline) {
			b.t.Errorf("processes in %s do not die: %v", space, left)
			return
		}
	}
}

// usual are the normal lines of sshd's log.
var usual = regexp.MustCompile(`(?m)^(Server listening|Accepted publickey|Received disconnect|Disconnected from) .*\n`)

// inSpace returns the processes of a network namespace.
func inSpace(space string) []Process {
	var want syscall.Stat_t
	if syscall.Stat("/run/netns/"+space, &want) != nil {
		return nil
	}
	dirs, _ := filepath.Glob("/proc/[0-9]*") // the pattern is good
	var found []Process
	for _, dir := range dirs {
		var st syscall.Stat_t
		if syscall.Stat(dir+"/ns/net", &st) != nil || st.Ino != want.Ino || st.Dev != want.Dev {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(dir)) // digits, by the pattern
		if line, err := os.ReadFile(dir + "/cmdline"); !errors.Is(err, fs.ErrNotExist) {
			found = append(found, Process{pid, strings.TrimSpace(strings.ReplaceAll(string(line), "\x00", " "))})
		}
	}
	return found
}

// link runs ip link on the bed's network.
func (b *Bed) link(args ...string) {
	b.t.Helper()
	b.ip(append([]string{"-n", b.space, "link"}, args...)...)
}

func (b *Bed) ip(args ...string) {
	b.t.Helper()
	b.run("ip", args...)
}

func (b *Bed) run(name string, args ...string) {
	b.t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		b.t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
}
