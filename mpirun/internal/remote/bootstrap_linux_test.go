package remote

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A newcomer is a bootstrap that is sent a program.
type newcomer struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// arrive starts a bootstrap as the first process of a PID namespace, as two hosts' may have equal
// numbers.
func arrive(t *testing.T, me self, cache string) *newcomer {
	t.Helper()
	n := &newcomer{t: t, cmd: exec.Command("sh", "-c", me.command("", true))}
	n.cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+cache)
	n.cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	out, err := n.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	n.out = bufio.NewReader(out)
	if n.in, err = n.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := n.cmd.Start(); err != nil {
		t.Skipf("a PID namespace needs root: %v", err)
	}
	t.Cleanup(func() { n.cmd.Process.Kill(); n.cmd.Wait() })
	late := time.AfterFunc(time.Minute, func() { n.cmd.Process.Kill() })
	t.Cleanup(func() { late.Stop() })
	return n
}

func (n *newcomer) expect(line string) {
	n.t.Helper()
	if got, err := n.out.ReadString('\n'); got != line+"\n" || err != nil {
		n.t.Fatalf("%q, %v; want %q", got, err, line)
	}
}

func (n *newcomer) send(text string) {
	n.t.Helper()
	if _, err := io.WriteString(n.in, text); err != nil {
		n.t.Fatal(err)
	}
}

// Hosts that share a folder may be sent gompirun at the same time, and nothing is left beside it.
func TestTwoHostsMayBeSentOneProgramAtOnce(t *testing.T) {
	me, err := newSelf()
	if err != nil {
		t.Fatal(err)
	}
	const program = "#!/bin/sh\necho runs\n"
	me.size = int64(len(program))
	cache := t.TempDir()
	a, b := arrive(t, me, cache), arrive(t, me, cache)
	a.expect(strings.TrimSpace(lineWant))
	b.expect(strings.TrimSpace(lineWant))
	a.send(program)
	a.expect("runs")
	b.send(program)
	b.expect("runs")
	if got, _ := filepath.Glob(filepath.Join(cache, "*/*/*")); len(got) != 1 || filepath.Base(got[0]) != me.name {
		t.Errorf("%q; want the program alone", got)
	}
}

// A program unused for long is removed when another is put beside it, but never a program in use.
func TestWhatIsUsedIsNotRemoved(t *testing.T) {
	me, err := newSelf()
	if err != nil {
		t.Fatal(err)
	}
	cache := t.TempDir()
	long := time.Now().Add(-40 * 24 * time.Hour)
	run := func(build string) {
		t.Helper()
		const program = "#!/bin/sh\necho \"$@\"\n"
		me.build, me.size = build, int64(len(program))
		cmd := exec.Command("sh", "-c", me.command("", true))
		cmd.Env, cmd.Stdin = append(os.Environ(), "XDG_CACHE_HOME="+cache), strings.NewReader(program)
		if out, err := cmd.CombinedOutput(); err != nil || !strings.HasSuffix(string(out), AgentFlag+" "+build+"\n") {
			t.Fatalf("%s: %q, %v; want that it runs", build, out, err)
		}
	}
	folder := func(build string) string {
		found, _ := filepath.Glob(filepath.Join(cache, "gompi-*", build))
		if len(found) != 1 {
			return ""
		}
		return found[0]
	}
	run("used")
	run("unused")
	socket := filepath.Join(filepath.Dir(folder("used")), "1-a.sock") // of a job that has run for long
	if err := errors.Join(os.WriteFile(socket, nil, 0o600), os.Chtimes(socket, long, long)); err != nil {
		t.Fatal(err)
	}
	for _, build := range []string{"used", "unused"} {
		if err := os.Chtimes(folder(build), long, long); err != nil {
			t.Fatal(err)
		}
	}
	run("used")
	run("new")
	if folder("used") == "" || folder("new") == "" || folder("unused") != "" {
		t.Errorf("used in %q, new in %q, unused in %q; want all but the last", folder("used"), folder("new"),
			folder("unused"))
	}
	if _, err := os.Stat(socket); err != nil {
		t.Errorf("%v; want that sockets stay", err)
	}
}

// A folder that others can write is not used, nor are programs in it.
func TestWhatOthersCanWriteIsNotUsed(t *testing.T) {
	me, err := newSelf()
	if err != nil {
		t.Fatal(err)
	}
	const program = "#!/bin/sh\necho runs\n"
	me.size = int64(len(program))
	for _, mode := range []os.FileMode{0o720, 0o702, 0o755} {
		for _, below := range []string{"", me.build} {
			cache, tmp := t.TempDir(), t.TempDir()
			own := filepath.Join(cache, fmt.Sprintf("gompi-%d", os.Getuid()))
			build := filepath.Join(own, me.build)
			planted := "#!/bin/sh\necho planted\n"
			err := errors.Join(os.MkdirAll(build, 0o700),
				os.WriteFile(filepath.Join(build, me.name), []byte(planted), 0o700),
				os.Chmod(filepath.Join(own, below), mode))
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("sh", "-c", me.command("", true))
			cmd.Env, cmd.Stdin = append(os.Environ(), "XDG_CACHE_HOME="+cache, "TMPDIR="+tmp),
				strings.NewReader(program)
			out, err := cmd.CombinedOutput()
			want := "runs\n"
			if mode == 0o755 {
				want = "planted\n"
			}
			if err != nil || !strings.HasSuffix(string(out), want) {
				t.Errorf("%q with mode %o: %q, %v; want %q", below, mode, out, err, want)
			}
		}
	}
}
