package boot

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"gompi/internal/boot/rank0"
	"gompi/internal/env"
	"gompi/internal/sockets"
)

// errForged is wrapped by the errors of a contact that another process may have written. A retry
// would not help.
var errForged = errors.New("not to be trusted")

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
			t, err := readContact(path)
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
	s, err := lead(ctx, p.size, secret, ln, func() error { return writeContact(path, rank0.ContactOf(ln, secret, p.local)) }, remove)
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

// writeContact creates the file atomically.
func writeContact(path string, t *rank0.Contact) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".") // mode 0600
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, t.String())
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// readContact reads rank 0's contact. readContact refuses a file that another user could have
// written.
func readContact(path string) (*rank0.Contact, error) {
	os.ReadDir(filepath.Dir(path)) // makes NFS drop a cached lookup that found no file
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() { // opening or reading another kind, such as a FIFO, may block
		return nil, fmt.Errorf("%s is %s, want a file: %w", path, kindOf(st.Mode()), errForged)
	}
	if err := private(path, st); err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, 4096))
	if err != nil {
		return nil, err
	}
	return rank0.ParseContact(strings.TrimSpace(string(b)))
}

// kindOf names a file that is not regular.
func kindOf(m os.FileMode) string {
	switch {
	case m.IsDir():
		return "a folder"
	case m&os.ModeNamedPipe != 0:
		return "a named pipe"
	}
	return "a device"
}

// private returns an error unless a file or folder is this user's alone.
func private(path string, st os.FileInfo) error {
	if sys, ok := st.Sys().(*syscall.Stat_t); ok && int(sys.Uid) != os.Geteuid() {
		return fmt.Errorf("%s is of user %d, want %d: %w", path, sys.Uid, os.Geteuid(), errForged)
	}
	if st.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s has mode %v, want none for others than its owner: %w", path, st.Mode(), errForged)
	}
	return nil
}

// privateDir returns a folder of this host that only this user can access.
func privateDir() (string, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("gompi-%d", os.Geteuid()))
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	st, err := os.Lstat(dir)
	if err != nil {
		return "", err
	}
	if !st.IsDir() {
		return "", fmt.Errorf("%s is no folder: %w", dir, errForged)
	}
	return dir, private(dir, st)
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
		return nil, fmt.Errorf("%s has %d characters, want at least %d: openssl rand -hex 16 makes one", env.Token, len(token), leastToken)
	}
	addr := os.Getenv(env.TorchMasterAddr)
	port, err := strconv.Atoi(os.Getenv(env.TorchMasterPort))
	if err != nil || port < 1 || port+masterPorts > 65535 {
		return nil, fmt.Errorf("%s=%q: want a port, with %d more after it", env.TorchMasterPort, os.Getenv(env.TorchMasterPort), masterPorts)
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
