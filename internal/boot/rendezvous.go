package boot

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"gompi/internal/boot/rank0"
	"gompi/internal/env"
	"gompi/internal/sockets"
)

// openFile joins the job by a file in a folder that all ranks see. The file holds rank 0's contact.
// Only this user can read the file, which is removed when all ranks have met.
func openFile(ctx context.Context, p *place, dir string) (Boot, error) {
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		return nil, fmt.Errorf("%s: no folder %q on this host", env.Rendezvous, dir)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %s", p.name, p.size, p.job))
	path := filepath.Join(dir, fmt.Sprintf("gompi-%x", sum[:12]))
	if p.rank > 0 {
		return orError(follow(ctx, p.rank, func(context.Context) ([32]byte, [][]string, error) {
			t, err := rank0.ReadContact(path)
			if err != nil {
				return [32]byte{}, nil, err
			}
			at, err := t.Endpoints()
			return t.Secret, at, err
		}))
	}
	ln, err := listen(p.local)
	if err != nil {
		return nil, err
	}
	_, secret := NewJob()
	remove := func() { os.Remove(path) } // an error means that the file is gone already
	write := func() error { return rank0.ContactOf(ln, secret, p.local).Write(path) }
	s, err := lead(ctx, p.size, secret, ln, write, remove)
	if err != nil {
		remove()
	}
	return orError(s, err)
}

// orError keeps a nil *client from becoming a Boot.
func orError(s *client, err error) (Boot, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

const (
	// masterPorts is the number of ports tried after MASTER_PORT. MASTER_PORT itself is torchrun's,
	// or the script's.
	masterPorts = 8
	// leastToken is the shortest token that is accepted as a secret.
	leastToken = 16
)

// openMaster joins the job by MASTER_ADDR and the ports after MASTER_PORT. The token proves the
// identity of the process that answers there.
func openMaster(ctx context.Context, p *place, token string) (Boot, error) {
	if len(token) < leastToken {
		return nil, fmt.Errorf("%s has %d characters, want at least %d: openssl rand -hex 16 makes one", env.Token,
			len(token), leastToken)
	}
	addr := os.Getenv(env.TorchMasterAddr)
	port, err := strconv.Atoi(os.Getenv(env.TorchMasterPort))
	if err != nil || port < 1 || port+masterPorts > 65535 {
		return nil, fmt.Errorf("%s=%q: want a port, with %d more after it", env.TorchMasterPort,
			os.Getenv(env.TorchMasterPort), masterPorts)
	}
	mac := hmac.New(sha256.New, []byte(token))
	fmt.Fprintf(mac, "gompi job %s %d %s", p.name, p.size, p.job)
	secret := [32]byte(mac.Sum(nil))
	if p.rank == 0 {
		ln, err := listenBetween("", port+1, port+masterPorts)
		if err != nil {
			return nil, err
		}
		return orError(lead(ctx, p.size, secret, ln, func() error { return nil }, func() {}))
	}
	var endpoints []string
	return orError(follow(ctx, p.rank, func(ctx context.Context) (_ [32]byte, _ [][]string, err error) {
		if endpoints == nil { // one answer of the name service is enough
			endpoints, err = masterEndpoints(ctx, addr, port)
		}
		return secret, [][]string{endpoints}, err
	}))
}

// masterEndpoints returns the endpoints at which rank 0 may listen. If MASTER_ADDR is this host's,
// they are on loopback, which survives the loss of an interface.
func masterEndpoints(ctx context.Context, addr string, port int) ([]string, error) {
	own, err := ownAddr(ctx, addr)
	if err != nil {
		return nil, fmt.Errorf("%s=%q: %w", env.TorchMasterAddr, addr, err)
	}
	if own {
		addr = sockets.Loopback().String()
	}
	endpoints := make([]string, masterPorts)
	for i := range endpoints {
		endpoints[i] = net.JoinHostPort(addr, strconv.Itoa(port+1+i))
	}
	return endpoints, nil
}

// ownAddr reports whether a name, or an address, is this host's.
func ownAddr(ctx context.Context, name string) (bool, error) {
	limited, cancel := context.WithTimeout(ctx, rank0.ReachTime)
	defer cancel()
	theirs, err := net.DefaultResolver.LookupNetIP(limited, "ip", name)
	if err != nil {
		return false, err
	}
	own := rank0.OwnAddrs()
	return slices.ContainsFunc(theirs, func(a netip.Addr) bool { return slices.Contains(own, a.Unmap()) }), nil
}
