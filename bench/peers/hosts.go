package peers

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gompi/bench/internal/runner"
	"gompi/hostfile"
)

// Hosts are other machines for ranks, with the same files as here.
type Hosts struct {
	Names  []string
	Addrs  []string // of each, as seen on it
	Iface  string   // interface of the first host that has its address
	Here   string   // address of this machine, as seen on the hosts
	Subnet string   // of all of them: 10.0.0.0/24

	rsh []string // the command that logs in: ssh and its arguments
	dir string   // for launchers' files
}

// The dialects of hostfiles.
const (
	withSlots = "%s slots=%d"
	withColon = "%s:%d"
)

// HostNames returns the hosts of -hostfile's file. Its slots do not matter: ranks are dealt out
// evenly.
func HostNames(file string) ([]string, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("-hostfile: %w", err)
	}
	defer f.Close()
	list, err := hostfile.Parse(file, f)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, h := range list.Hosts {
		names = append(names, h.Name)
	}
	if len(names) == 0 {
		return nil, errors.New("-hostfile " + file + ": want a host, or more")
	}
	return names, nil
}

// On logs in to each of the other hosts once, and writes launchers' hostfiles for each of nps.
// Later peers are entered on these hosts. Without names it does nothing.
func (b *Bench) On(ctx context.Context, names, rsh []string, nps []int) error {
	if len(names) == 0 {
		return nil
	}
	h := &Hosts{Names: names, rsh: rsh, dir: b.dir}
	b.Hosts = h
	if err := os.WriteFile(h.Login(), []byte("#!/bin/sh\nexec "+h.RSH()+" \"$@\"\n"), 0o700); err != nil {
		return err
	}
	for i, name := range names {
		out, err := h.On(i, "sh", "-c", "set -- $SSH_CONNECTION; echo $*; ip -o addr show to $3 | awk '{print $2}'").Run(ctx, toolLimit)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		f := strings.Fields(string(out.Stdout)) // client, its port, server, its port
		if len(f) < 5 {
			return fmt.Errorf("%s: it says %q of its connection: want a login by ssh, and the command ip there", name, f)
		}
		h.Here, h.Addrs = f[0], append(h.Addrs, f[2])
		if i == 0 {
			h.Iface = f[4]
		}
	}
	if addr, err := netip.ParseAddr(h.Here); err == nil && addr.Is4() {
		h.Subnet = netip.PrefixFrom(addr, 24).Masked().String()
	}
	for _, np := range nps {
		for _, dialect := range []string{withSlots, withColon} {
			var text strings.Builder
			for _, name := range names {
				fmt.Fprintf(&text, dialect+"\n", name, h.Share(np))
			}
			if err := os.WriteFile(h.File(np, dialect), []byte(text.String()), 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}

// Share returns the number of ranks, of np in all, on a host.
func (h *Hosts) Share(np int) int { return (np + len(h.Names) - 1) / len(h.Names) }

// File returns the path of the hostfile for np ranks in a dialect.
func (h *Hosts) File(np int, dialect string) string {
	kind := map[string]string{withSlots: "slots", withColon: "colon"}[dialect]
	return filepath.Join(h.dir, fmt.Sprintf("hosts.%d.%s", np, kind))
}

// RSH returns the login command, quoted for a shell.
func (h *Hosts) RSH() string { return words(h.rsh) }

// Login returns the path of a program that replaces ssh.
func (h *Hosts) Login() string { return filepath.Join(h.dir, "login") }

// On returns the command that runs args on host i.
func (h *Hosts) On(i int, args ...string) runner.Command {
	return runner.Command{Args: append(slices.Clone(h.rsh), h.Names[i], words(args))}
}

// words joins args to a line for a shell.
func words(args []string) string {
	quoted := make([]string, len(args))
	for i, a := range args {
		quoted[i] = quote(a)
	}
	return strings.Join(quoted, " ")
}

// quote quotes s as one word of a shell.
func quote(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+./:,@%") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Logins returns the job that logs in to all hosts at the same time: a lower bound for launchers
// that log in.
func (h *Hosts) Logins() runner.Job {
	var j runner.Job
	for i := range h.Names {
		j = append(j, h.On(i, "true"))
	}
	return j
}
