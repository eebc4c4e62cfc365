package mpirun

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"gompi/mpirun/internal/cmdline"
)

func TestEachCommandHasItsHelpAndItsFunction(t *testing.T) {
	var got, want []string
	for _, c := range cmdline.Commands {
		want = append(want, c.Name)
	}
	for name := range commands {
		if !strings.HasPrefix(name, "--") { // of processes of jobs
			got = append(got, name)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("commands are %q, their helps' %q", got, want)
	}
}

// Another user's gompirun and this one's know nothing of each other's jobs; root sees and ends all.
func TestJobsAreTheirUsersAndRoots(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user")
	}
	const nobody = 65534
	dir := t.TempDir()
	copyProgram(t, "gompirun", filepath.Join(dir, "gompirun"))
	if err := errors.Join(os.Chmod(dir, 0o755), os.Chmod(filepath.Dir(dir), 0o755)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(fmt.Sprintf("/tmp/gompi-%d", nobody)) }) // if it is empty
	other := func(args ...string) *exec.Cmd {
		cmd := exec.Command(filepath.Join(dir, "gompirun"), args...)
		cmd.Dir, cmd.Env = "/", append(os.Environ(), "HOME=/", "XDG_RUNTIME_DIR=")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		return cmd
	}
	mine := startTalk(t, "-np", "1", "sh", "-c", "echo ready; sleep 1000")
	mine.expect("ready")
	theirs := other("-q", "-np", "1", "sh", "-c", "echo ready; sleep 1001")
	out := started(t, theirs)
	t.Cleanup(func() { theirs.Process.Kill(); theirs.Wait() })
	if line, err := out.ReadString('\n'); line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	ownJob, theirJob := strconv.Itoa(mine.cmd.Process.Pid), strconv.Itoa(theirs.Process.Pid)

	text, err := other("ps").CombinedOutput()
	if err != nil || !strings.Contains(string(text), " "+theirJob+" ") ||
		strings.Contains(string(text), " "+ownJob+" ") {
		t.Errorf("they see %s, %v; want process %s, not %s", text, err, theirJob, ownJob)
	}
	text, err = other("kill", ownJob).CombinedOutput()
	if want := `"` + ownJob + `": no gompirun of yours runs that`; err == nil || !strings.Contains(string(text), want) {
		t.Errorf("%v, %s; want %s", err, text, want)
	}
	text, err = exec.Command("gompirun", "ps").CombinedOutput()
	for _, want := range []string{" USER ", " " + ownJob + " ", " " + theirJob + " "} {
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("root sees %s, %v; want %s", text, err, want)
		}
	}
	// How to log in to a host is a command: root takes none of another user.
	text, err = exec.Command("gompirun", "attach", "-job", theirJob, "0").CombinedOutput()
	if err == nil || !strings.Contains(string(text), "no gompirun of yours runs that") {
		t.Errorf("attach to another's job: %v, %s", err, text)
	}
	text, err = exec.Command("gompirun", "kill", theirJob).CombinedOutput()
	if err != nil || !strings.Contains(string(text), "has ended with status 143") {
		t.Errorf("root ends it: %v, %s", err, text)
	}
	theirs.Wait()
	if status := theirs.ProcessState.ExitCode(); status != 143 {
		t.Errorf("it has ended with status %d, want 143", status)
	}
}

// On a terminal jobs are shown again and again, until they have ended.
func TestTopEndsWithTheJobs(t *testing.T) {
	k := startTalk(t, "-np", "1", "sh", "-c", "echo ready; sleep 1000")
	k.expect("ready")
	tty := newTerminal(t)
	tty.command(fmt.Sprintf("gompirun top -interval 0.05 %d", k.cmd.Process.Pid))
	for range 3 {
		tty.expect("\x1b[H")
		tty.expect("RANK")
		tty.expect("\x1b[J")
	}
	k.cmd.Process.Signal(syscall.SIGTERM)
	tty.expect("no job runs any more")
	tty.expect(prompt)
	k.ends(143)
}
