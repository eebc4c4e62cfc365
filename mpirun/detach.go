package mpirun

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"gompi/mpirun/internal/monitor"
	"gompi/mpirun/internal/stdio"
)

// detachedFlag is the first argument of a process that has been detached, and detachedFD its
// descriptor for the job's id.
const (
	detachedFlag = "--detached"
	detachedFD   = 3
)

// runDetached runs the job of a command line, and reports its beginning.
func runDetached(args []string) int {
	parent := os.NewFile(detachedFD, "the process that detaches")
	return runWords(args, func(id string) {
		fmt.Fprintln(parent, id)
		parent.Close() // later runs of the job are not reported
	})
}

// detach runs a command line in another process, without this terminal. It returns 0 when its
// ranks run, or else the status of a job that could not be started.
func detach(args []string, quiet bool) int {
	id, log, status, err := startDetached(args)
	switch {
	case err != nil:
		fmt.Fprintf(stdio.Stderr, "gompirun: -detach: %v\n", err)
		return statusFailed
	case id == "":
		return status
	}
	fmt.Fprintln(stdio.Stdout, id)
	if !quiet {
		fmt.Fprintf(stdio.Stderr, "gompirun: gompirun logs -f %s shows its output, all of which is in %s\n",
			(&monitor.Job{ID: id}).Short(), log)
	}
	return 0
}

// startDetached returns the id and the file with the output of a job that has started. If it has
// ended before, startDetached prints its output.
func startDetached(args []string) (id, log string, status int, err error) {
	out, err := monitor.NewLog()
	if err != nil {
		return "", "", 0, fmt.Errorf("a file for the output: %w", err)
	}
	defer out.Close()
	defer os.Remove(out.Name()) // under this name
	began, writer, err := os.Pipe()
	if err != nil {
		return "", "", 0, err
	}
	cmd := exec.Command("/proc/self/exe", append([]string{detachedFlag}, args...)...)
	cmd.Args[0], cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = os.Args[0], out, out, []*os.File{writer}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	signals := make(chan os.Signal, 1)
	for _, sig := range endJob {
		if !signal.Ignored(sig) { // as nohup has it
			signal.Notify(signals, sig)
		}
	}
	if err = cmd.Start(); err != nil {
		return "", "", 0, err
	}
	go func() { // until the process ends
		for s := range signals {
			cmd.Process.Signal(s)
		}
	}()
	writer.Close()
	if id, err = bufio.NewReader(began).ReadString('\n'); err == nil {
		id = strings.TrimSpace(id)
		log = filepath.Join(filepath.Dir(out.Name()), id+".log")
		return id, log, 0, os.Rename(out.Name(), log)
	}
	cmd.Wait()
	out.Seek(0, io.SeekStart)
	_, err = io.Copy(stdio.Stderr, out)
	if w, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return "", "", 128 + int(w.Signal()), err
	}
	return "", "", cmd.ProcessState.ExitCode(), err
}
