//go:build linux

package mpirun

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gompi/internal/boot/wire"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/remote"
)

// A file that takes long to be read does not keep the job from hearing of its time
// limit, as of signals.
func TestReadingWhatIsPreloadedCanBeEnded(t *testing.T) {
	large := filepath.Join(t.TempDir(), "large")
	f, err := os.Create(large)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(1 << 40); err != nil { // of which no byte is stored
		t.Fatal(err)
	}
	cmd := exec.Command("gompirun", "-q", "-timeout", "1", "-np", "1", "-preload-files", large, "true")
	defer time.AfterFunc(soon, func() { cmd.Process.Kill() }).Stop()
	out, _ := cmd.CombinedOutput()
	if status := cmd.ProcessState.ExitCode(); status != 124 ||
		!strings.Contains(string(out), "time limit of 1s reached") {
		t.Errorf("status %d, %q; want the time limit", status, out)
	}
}

// An agent that reads a file for long, to see whether it is the one that is to be there, answers
// meanwhile, and ends with its channel.
func TestAnAgentThatReadsForLongAnswers(t *testing.T) {
	dir := t.TempDir()
	large := ctl.File{Name: "large", Sum: "another", Size: 1 << 40}
	f, err := os.Create(filepath.Join(dir, large.Name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(large.Size); err != nil { // of which no byte is stored
		t.Fatal(err)
	}
	cmd := exec.Command("gompirun", remote.LocalFlag)
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(soon, func() { cmd.Process.Kill() })
	defer late.Stop()
	launch := &ctl.Launch{
		Size: 1, Nodes: 1, Remote: true, Dir: dir, Window: 1 << 20, Stdin: ctl.StdinNone, Files: []ctl.File{large},
		Programs: []ctl.Program{{Argv: []string{"true"}}}, Ranks: []ctl.Rank{{}},
	}
	layout := &ctl.Layout{Hosts: []string{"host1"}, Placement: []wire.Run{{Count: 1}}}
	in.Write(ctl.Append(ctl.Append(ctl.Append(nil, layout), launch), &ctl.Ping{Sent: 7}))
	for r := ctl.NewReader(out); ; {
		m, err := r.Next()
		if err != nil {
			t.Fatalf("%v; want an answer", err)
		}
		if pong, ok := m.(*ctl.Pong); ok && pong.Sent == 7 {
			break
		}
	}
	in.Close()
	if err := cmd.Wait(); err != nil || !late.Stop() {
		t.Errorf("%v; want that it ends with its channel", err)
	}
}
