package testbed

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// This file has the hosts' sshd, and the keys by which the user logs in.

// makeKeys makes the keys of the user and the hosts, and the user's configuration.
func (b *Bed) makeKeys(n int) {
	b.t.Helper()
	b.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(b.dir, "key"))
	var config, known strings.Builder
	for i := 1; i <= n; i++ {
		b.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", b.file(i, "key"))
		public, err := os.ReadFile(b.file(i, "key.pub"))
		if err != nil {
			b.t.Fatal(err)
		}
		fmt.Fprintf(&known, "%s %s", b.Addr(i), public)
		fmt.Fprintf(&config, "Host %s\n  HostName %s\n", b.Name(i), b.Addr(i))
	}
	fmt.Fprintf(&config, "Host *\n  User root\n  IdentityFile %[1]s/key\n  IdentitiesOnly yes\n  UserKnownHostsFile %[1]s/known_hosts\n"+
		"  GlobalKnownHostsFile none\n  StrictHostKeyChecking yes\n", b.dir)
	b.write("known_hosts", known.String(), 0o600)
	b.write("ssh_config", config.String(), 0o600)
}

// configure writes a host's configuration.
func (b *Bed) configure(i int, c Config) {
	b.t.Helper()
	extra := ""
	if c.SSHD != nil {
		extra = c.SSHD(i) + "\n"
	}
	b.write(b.Name(i)+".sshd_config", extra+fmt.Sprintf("HostKey %s\nAuthorizedKeysFile %s/key.pub\nPidFile none\n"+
		"StrictModes no\nPermitRootLogin yes\nKbdInteractiveAuthentication no\nUsePAM no\n", b.file(i, "key"),
		b.dir), 0o600)
	var script strings.Builder
	for _, dir := range c.Private {
		fmt.Fprintf(&script, "mount -t tmpfs tmpfs '%s' && ", dir)
	}
	// The user's login scripts are no part of the tests: they may be slow, and a killed login may
	// hold their lock forever (pyenv's does).
	if u, err := user.Current(); err == nil {
		rc := filepath.Join(u.HomeDir, ".bashrc")
		fmt.Fprintf(&script, "{ [ ! -e '%[1]s' ] || mount --bind /dev/null '%[1]s'; } && ", rc)
	}
	if c.Setup != nil {
		fmt.Fprintf(&script, "%s && ", c.Setup(i))
	}
	fmt.Fprintf(&script, "hostname %s && exec %s -D -f '%s' -E '%s'", b.Name(i), sshd, b.file(i, "sshd_config"),
		b.file(i, "log"))
	b.hosts[i-1].script = script.String()
}

// StartServer starts a host's sshd again, with empty folders of its own.
func (b *Bed) StartServer(i int) {
	b.t.Helper()
	b.serve(i)
	b.awaitServer(i)
}

// serve starts a host's sshd.
func (b *Bed) serve(i int) {
	b.t.Helper()
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // empty, but required by sshd
		b.t.Skipf("sshd needs a folder: %v", err)
	}
	h := b.hosts[i-1]
	h.starts++
	h.sshd, h.done = b.Command(i, "sh", "-c", h.script), make(chan struct{})
	h.sshd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: syscall.CLONE_NEWUTS}
	h.sshd.Dir = "/"
	h.sshd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	if err := h.sshd.Start(); err != nil {
		h.sshd = nil
		b.t.Fatalf("sshd of %s: %v", b.Name(i), err)
	}
	go func() { // until sshd ends, by remove
		h.sshd.Wait()
		close(h.done)
	}()
}

// listening is sshd's log message when it is ready.
const listening = "Server listening on 0.0.0.0 "

func (b *Bed) awaitServer(i int) {
	b.t.Helper()
	h := b.hosts[i-1]
	for deadline := time.Now().Add(timeout); strings.Count(b.Log(i),
		listening) < h.starts; time.Sleep(5 * time.Millisecond) {
		select {
		case <-h.done:
			b.t.Fatalf("sshd of %s ended: %s", b.Name(i), b.Log(i))
		default:
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("sshd of %s does not listen: %s", b.Name(i), b.Log(i))
		}
	}
}

// StopServer ends a host's sshd: connections to it are refused from then on.
func (b *Bed) StopServer(i int) {
	h := b.hosts[i-1]
	h.sshd.Process.Signal(syscall.SIGTERM)
	select {
	case <-h.done:
	case <-time.After(timeout):
		b.t.Fatalf("sshd of %s does not end", b.Name(i))
	}
}
