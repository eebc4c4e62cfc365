package testbed

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestHostsHaveNamesOfTheirOwnAndCanBeCutOff(t *testing.T) {
	private := t.TempDir()
	if err := os.WriteFile(filepath.Join(private, "here"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b := Make(t, Config{Hosts: 2, Private: []string{private}})
	ssh := func(i int, command string) (string, error) {
		out, err := exec.Command(b.ssh(), "-F", b.SSHConfig, "-o", "BatchMode=yes", "-o", "ConnectTimeout=1", b.Name(i),
			command).CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	for i := 1; i <= 2; i++ {
		got, err := ssh(i, "hostname; ls "+private+"; echo $SSH_CONNECTION")
		if err != nil || !strings.HasPrefix(got, b.Name(i)+"\n"+b.Here()+" ") ||
			!strings.Contains(got, " "+b.Addr(i)+" ") {
			t.Errorf("%s says %q, %v", b.Name(i), got, err)
		}
	}
	if got, err := ssh(1, "getent hosts host2"); err != nil || !strings.HasPrefix(got, b.Addr(2)+" ") {
		t.Errorf("host1 knows host2 as %q, %v; want %s", got, err, b.Addr(2))
	}
	b.AwaitEmpty(timeout)
	for _, off := range []func(int){b.Cut, b.Silence} {
		off(2)
		if got, err := ssh(2, "hostname"); err == nil {
			t.Errorf("%s can be reached, and says %q", b.Name(2), got)
		}
		b.Mend(2)
		for deadline := time.Now().Add(timeout); ; {
			if _, err := ssh(2, "hostname"); err == nil {
				break
			} else if time.Now().After(deadline) {
				t.Fatalf("%s cannot be reached again: %v", b.Name(2), err)
			}
		}
	}
	b.StopServer(1)
	if got, err := ssh(1, "hostname"); err == nil || !strings.Contains(got, "refused") {
		t.Errorf("without sshd: %q, %v; want that it refuses", got, err)
	}
}

// A test's network is invisible to other processes: here, and on another bed, which has the same
// addresses.
func TestNoOtherProcessSeesABedsNetwork(t *testing.T) {
	a, b := New(t, 1), New(t, 1)
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, addr := range addrs {
		if strings.HasPrefix(addr.String(), a.Here()+"/") {
			t.Errorf("this machine has the bed's address %v", addr)
		}
	}
	for _, bed := range []*Bed{a, b} {
		at := filepath.Join(t.TempDir(), "who")
		bed.Put(1, at, "#!/bin/sh\necho "+bed.name+"\n")
		out, err := bed.Command(0, bed.ssh(), "-F", bed.SSHConfig, bed.Name(1), at).CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != bed.name {
			t.Errorf("host1 of bed %s says %q, %v", bed.name, got, err)
		}
	}
}
