package contest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// login makes a script that stands for ssh: it runs the command here, as sshd
// does, with what sshd tells of the connection.
func login(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	ssh := filepath.Join(dir, "ssh")
	script := "#!/bin/sh\nPATH=" + dir + ":$PATH SSH_CONNECTION='10.9.0.254 5000 10.9.0.'${3#host}' 22' HOST=$3 exec sh -c \"$4\"\n"
	ip := "#!/bin/sh\necho '2: eth7    inet 10.9.0.1/24'\n"
	for name, text := range map[string]string{"ssh": script, "ip": ip} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return []string{ssh, "-F", "a file"}
}

func TestHostsAreReachedAndHaveTheirFiles(t *testing.T) {
	shop, err := NewWorkshop()
	if err != nil {
		t.Fatal(err)
	}
	defer shop.Close()
	h, err := shop.NewHosts(t.Context(), []string{"host1", "host2"}, login(t), []int{3})
	if err != nil {
		t.Fatal(err)
	}
	if h.Here != "10.9.0.254" || h.Addrs[1] != "10.9.0.2" || h.Iface != "eth7" || h.Subnet != "10.9.0.0/24" {
		t.Errorf("got %+v", h)
	}
	for dialect, want := range map[string]string{withSlots: "host1 slots=2\nhost2 slots=2\n", withColon: "host1:2\nhost2:2\n"} {
		if got, err := os.ReadFile(h.File(3, dialect)); err != nil || string(got) != want {
			t.Errorf("hostfile %q, %v; want %q", got, err, want)
		}
	}
	out, err := h.On(1, "sh", "-c", `echo "$HOST: it's me"`).Run(t.Context(), time.Minute)
	if err != nil || string(out.Stdout) != "host2: it's me\n" {
		t.Errorf("on host2: %q, %v", out.Stdout, err)
	}
	again := Command{Args: []string{h.Login(), "host1", "echo $HOST"}}
	if out, err := again.Run(t.Context(), time.Minute); err != nil || string(out.Stdout) != "host1\n" {
		t.Errorf("by the file for launchers: %q, %v", out.Stdout, err)
	}
	if out, err := h.Logins().Run(t.Context(), time.Minute); err != nil || len(out.Stdout) != 0 {
		t.Errorf("logins: %q, %v", out.Stdout, err)
	}
	commands := Gompi("gompirun", "hello").Over(h, 3).String()
	if want := "gompirun -np 3 -hostfile " + h.File(3, withSlots) + " -rsh " + h.RSH() + " hello"; commands != want {
		t.Errorf("got %s, want %s", commands, want)
	}
	torch := &Torch{python: "python3", dir: "."}
	if j := torch.Run(Torchruns()[0], h, 4, nil); len(j) != 2 || !strings.Contains(j[1].String(), "host2 env GLOO_SOCKET_IFNAME=eth7 python3 -m torch.distributed.run") ||
		!strings.Contains(j[1].String(), "--nproc_per_node 2 --node_rank 1 --master_addr 10.9.0.1") {
		t.Errorf("torchrun on hosts: %v", j)
	}
}

func TestAJobIsAllItsCommands(t *testing.T) {
	start := time.Now()
	out, err := Job{shell("echo one"), shell("echo two")}.Run(t.Context(), time.Minute)
	if err != nil || len(out.Stdout) != 8 || out.First <= 0 || out.First > out.Took || out.Took > time.Since(start) {
		t.Errorf("got %+v, %v; want both lines", out, err)
	}
	_, err = Job{shell("exec sleep 1000"), shell("echo the reason >&2; exit 3")}.Run(t.Context(), time.Minute)
	if err == nil || err.Error() != "exit status 3: the reason" || time.Since(start) > 30*time.Second {
		t.Errorf("one that fails: %v after %v, want the reason at once", err, time.Since(start))
	}
	if _, err := (Job{shell("exec sleep 1000")}).Run(t.Context(), 10*time.Millisecond); !errors.Is(err, ErrTimeLimit) {
		t.Errorf("got %v, want the time limit", err)
	}
}

func TestLinesAreToldAsTheyCome(t *testing.T) {
	var got []string
	c := shell("printf 'a\\nb'; printf 'c\\n\\nd'")
	c.Line = func(s string) { got = append(got, s) }
	if out, err := c.Run(t.Context(), time.Minute); err != nil || strings.Join(got, "|") != "a|bc|" || string(out.Stdout) != "a\nbc\n\nd" {
		t.Errorf("lines %q of %q, %v", got, out.Stdout, err)
	}
}
