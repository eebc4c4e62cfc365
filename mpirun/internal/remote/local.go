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
	"gompi/mpirun/internal/proc"
)

// Local starts agents on this machine, whatever the host's name.
type Local struct {
	Stderr io.Writer // for errors of agents
	Input  *os.File  // standard input for a rank; nil for none
}

// InputFD is the agent's descriptor of Local.Input, if there is one.
const InputFD = 3

// Start implements Starter. The context is ignored, because starting a process does not block.
func (l Local) Start(_ context.Context, _ hostfile.Host) (*Process, error) {
	return l.start(LocalFlag, l.Input)
}

// Guarded starts an agent with a watchdog on this machine: for a relay, which does not watch the
// agent.
func Guarded() (*Process, error) { return Local{}.start(AgentFlag) }

// start starts the running program, even if its file has been replaced, under the name by which it
// was called.
func (l Local) start(flag string, inherited ...*os.File) (*Process, error) {
	cmd := exec.Command(executable, flag)
	cmd.Args[0], cmd.Stderr, cmd.ExtraFiles = os.Args[0], l.Stderr, inherited
	agent, err := start(cmd, viaLocal)
	if err != nil {
		return nil, fmt.Errorf("start an agent here: %w", proc.NameLimit(err))
	}
	return agent, nil
}

// LocalOrRemote starts agents on this machine by Local, on other hosts by Remote. A host with a
// port or a user counts as another host, whatever its name: perhaps a container.
type LocalOrRemote struct {
	Local  Starter
	Remote interface {
		Starter
		ByHand(hostfile.Host) string
	}
	Own string // another name of this machine
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

// SSH returns Remote if that is an SSH.
func (n LocalOrRemote) SSH() (*SSH, bool) {
	ssh, ok := n.Remote.(*SSH)
	return ssh, ok
}

// MeansTheSame reports whether h is another host whose name may be valid on other hosts, too.
func (n LocalOrRemote) MeansTheSame(h hostfile.Host) bool { return !n.isLocal(h) && !IsLocal(h.Name) }

// ByHand returns the shell command for a user to try the start of an agent on another host.
func (n LocalOrRemote) ByHand(h hostfile.Host) string { return n.Remote.ByHand(h) }

// IsLocal reports whether host names this machine, without asking a name server: localhost, a
// loopback address, the machine's own name or one of its addresses.
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
