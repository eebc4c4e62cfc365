//go:build linux

package mpirun

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const prompt = "shell> "

// A terminal is a shell with job control on a terminal of its own.
type terminal struct {
	t    *testing.T
	keys *os.File
	mu   sync.Mutex
	text strings.Builder
	read int // bytes of text that have been expected
}

func newTerminal(t *testing.T) *terminal {
	t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	t.Cleanup(func() { keys.Close() })
	n, err := unix.IoctlGetInt(int(keys.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(keys.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	shell := exec.Command("bash", "--norc", "--noprofile", "-i")
	shell.Env = append(os.Environ(), "PS1="+prompt, "TERM=dumb", "HISTFILE=")
	shell.Stdin, shell.Stdout, shell.Stderr = tty, tty, tty
	shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		shell.Process.Signal(syscall.SIGHUP) // which it hands on to its jobs
		late := time.AfterFunc(soon, func() { shell.Process.Kill() })
		defer late.Stop()
		shell.Wait()
	})
	k := &terminal{t: t, keys: keys}
	go func() { // until the terminal is closed
		buf := make([]byte, 4096)
		for {
			n, err := keys.Read(buf)
			k.mu.Lock()
			k.text.Write(buf[:n])
			k.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return k
}

// shown is all that was, so far.
func (k *terminal) shown() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.text.String()
}

func (k *terminal) press(keys string) {
	if _, err := k.keys.WriteString(keys); err != nil {
		k.t.Fatal(err)
	}
}

// command types a line at the shell's next prompt: earlier, another process might read it.
func (k *terminal) command(line string) {
	k.t.Helper()
	k.expect(prompt)
	k.press(line + "\n")
}

// expect waits until want is shown, after the text expected before.
func (k *terminal) expect(want string) {
	k.t.Helper()
	for deadline := time.Now().Add(soon); ; time.Sleep(time.Millisecond) {
		text := k.shown()
		if at := strings.Index(text[k.read:], want); at >= 0 {
			k.read += at + len(want)
			return
		}
		if time.Now().After(deadline) {
			k.t.Fatalf("no %q after\n%s\nin\n%s", want, text[:k.read], text[k.read:])
		}
	}
}

// A job continues in the background, where typed text is not for it, and reads again in the
// foreground.
func TestAJobContinuesInTheBackground(t *testing.T) {
	k := newTerminal(t)
	ranks := `gompirun -np 2 sh -c 'test $RANK = 0 || exec sh -c "while :; do echo tick; sleep 0.02; done"; while read line; do echo got $line.; done'`
	for _, how := range []string{"stopped", "started"} {
		if how == "stopped" {
			k.command(ranks)
			k.expect("\r\ntick")
			k.press("first\n")
			k.expect("got first.")
			k.press("\x1a")
			k.expect("Stopped")
			k.command("bg")
		} else {
			k.command(ranks + " &")
		}
		k.command("echo the shell $((1+1))") // which takes it, and wanting it does not stop the job
		k.expect("the shell 2")
		k.command("jobs -r")
		k.expect("Running")
		k.expect(prompt)
		k.expect("\r\ntick")
		k.press("fg\n")
		k.expect("gompirun -np 2") // as the shell says it
		k.press("second\n")
		k.expect("got second.")
		k.press("\x03")
		k.expect("gompirun: interrupted\r\n")
		k.command("echo status $?")
		k.expect("\r\nstatus 130")
	}
}

// On a terminal a line reports success, and gompirun's own lines stand out.
func TestWhatGompirunSaysOnATerminal(t *testing.T) {
	k := newTerminal(t)
	k.command("gompirun -np 2 true")
	k.expect("\r\ngompirun: all ranks (2) have ended well after ")
	k.command("gompirun -np 2 -q true; echo quiet")
	k.expect("\r\nquiet")
	k.command("TERM=xterm gompirun -np 2 true")
	k.expect("\r\n\x1b[1mgompirun:\x1b[0m all ranks (2) have ended well after ")
	k.command("TERM=xterm gompirun -np 1 sh -c 'exit 3'")
	k.expect("\r\n\x1b[1;31mgompirun:\x1b[0m rank 0 on localhost exited with status 3")
	k.command("TERM=xterm NO_COLOR=1 gompirun -np 1 sh -c 'exit 3'")
	k.expect("\r\ngompirun: rank 0 on localhost exited with status 3")
	k.command("TERM=xterm gompirun -np 1 true 2>&1 | cat; echo over")
	k.expect("\r\nover")
	if said := k.shown()[:k.read]; strings.Count(said, "ended well") != 2 {
		t.Errorf("want two lines of jobs that ended well, without -q and on terminals, in\n%s", said)
	}
}
