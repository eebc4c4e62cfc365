package remote

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"

	"gompi/hostfile"
	"gompi/mpirun/internal/limits"
)

// Local starts agents on this machine, whatever the host is called.
type Local struct {
	Stderr io.Writer // where an agent that fails reports so
	Input  *os.File  // that a rank may get as its standard input; nil for none
}

// InputFD is the agent's descriptor of Local.Input, if it has been given one.
const InputFD = 3

// Start implements Starter. The context bounds nothing: starting a process does
// not block.
func (l Local) Start(_ context.Context, host hostfile.Host) (*Process, error) {
	// The running program, even if its file has been replaced, under the name
	// by which it was called.
	cmd := exec.Command("/proc/self/exe", LocalFlag)
	cmd.Args[0] = os.Args[0]
	cmd.Stderr = l.Stderr
	cmd.ExtraFiles = []*os.File{l.Input}
	agent, err := start(cmd, viaLocal)
	if err != nil {
		return nil, fmt.Errorf("start an agent on %s: %w", host.Name, limits.Explain(err))
	}
	return agent, nil
}

// Guarded starts an agent with a watchdog on this machine: beside a relay, which is no launcher.
func Guarded() (*Process, error) {
	cmd := exec.Command(executable, AgentFlag)
	cmd.Args[0] = os.Args[0]
	agent, err := start(cmd, viaLocal)
	if err != nil {
		return nil, fmt.Errorf("start the agent: %w", limits.Explain(err))
	}
	return agent, nil
}

// LocalOrRemote starts agents on this machine with Local, and those on other hosts with Remote. A
// host with a port or a user of its own is another one, whatever its name: a container, perhaps.
type LocalOrRemote struct {
	Local  Starter
	Remote interface {
		Starter
		ByHand(hostfile.Host) string
	}
	Own string // a name that is this machine's, too
}

// Start implements Starter.
func (n LocalOrRemote) Start(ctx context.Context, h hostfile.Host) (*Process, error) {
	if n.isLocal(h) {
		return n.Local.Start(ctx, h)
	}
	return n.Remote.Start(ctx, h)
}

func (n LocalOrRemote) isLocal(h hostfile.Host) bool {
	return h.Port == 0 && h.User == "" && (h.Name == n.Own || IsLocal(h.Name))
}

// SSH returns what reaches other hosts, if that is such.
func (n LocalOrRemote) SSH() (*SSH, bool) {
	ssh, ok := n.Remote.(*SSH)
	return ssh, ok
}

// MeansTheSame reports whether h is another host, and its name may mean that on others, too.
func (n LocalOrRemote) MeansTheSame(h hostfile.Host) bool { return !n.isLocal(h) && !IsLocal(h.Name) }

// ByHand returns the shell's command by which a user may try what starts an agent on a host other
// than this one.
func (n LocalOrRemote) ByHand(h hostfile.Host) string { return n.Remote.ByHand(h) }

// IsLocal reports whether host names this machine without asking a name
// server: localhost, a loopback address, the machine's own name or one of its
// addresses.
func IsLocal(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.Unmap().IsLoopback() || isOwn(addr.Unmap().WithZone(""))
	}
	own, err := os.Hostname()
	return err == nil && hostfile.Same(own, host)
}

func isOwn(addr netip.Addr) bool {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok {
			if ip, ok := netip.AddrFromSlice(n.IP); ok && ip.Unmap() == addr {
				return true
			}
		}
	}
	return false
}
