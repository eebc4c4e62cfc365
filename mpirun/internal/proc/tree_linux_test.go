package proc

import (
	"bufio"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestAProcessIsFoundWhateverItsName(t *testing.T) {
	tests := []struct {
		line string
		want Process
		ok   bool
	}{
		{"7 (sh) S 3 7 7 0", Process{7, 3, 7, false}, true},
		{"7 (a) R 1 (b) Z 3 7", Process{7, 3, 7, true}, true},
		{"7 (x\ny)) X 12 5", Process{7, 12, 5, true}, true},
		{"7 (sh) S 3", Process{}, false},
		{"7 (sh) S", Process{}, false},
		{"7 (sh) S x 7", Process{}, false},
		{"", Process{}, false},
	}
	for _, tt := range tests {
		dir := t.TempDir() + "/"
		if err := os.WriteFile(dir+"stat", []byte(tt.line), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, ok := find(7, dir); ok != tt.ok || ok && got != tt.want {
			t.Errorf("find %q = %v, %v; want %v, %v", tt.line, got, ok, tt.want, tt.ok)
		}
	}
}

// TestSignalReachesOrphans starts a shell that starts two sleeps and ends: only
// a reaper of orphans still finds them.
func TestSignalReachesOrphans(t *testing.T) {
	if err := Adopt(); err != nil {
		t.Fatal(err)
	}
	before, err := Below(nil)
	if err != nil {
		t.Fatal(err)
	}
	var known []int
	for _, p := range before {
		known = append(known, p.PID)
	}
	spare := func(pid int) bool { return slices.Contains(known, pid) }
	cmd := exec.Command("sh", "-c", "sleep 1000 >/dev/null & sh -c 'sleep 1000 >/dev/null & echo ready; exec >/dev/null; wait' & exit 0")
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	bufio.NewReader(pipe).ReadString('\n')
	cmd.Wait()
	n, err := SignalBelow(0, spare)
	if err != nil || n != 3 {
		t.Errorf("%d processes below, %v; want two sleeps and a shell", n, err)
	}
	deadline := time.Now().Add(time.Minute)
	for n > 0 && time.Now().Before(deadline) {
		n, _ = SignalBelow(unix.SIGKILL, spare)
		unix.Wait4(-1, nil, unix.WNOHANG, nil)
	}
	if n != 0 {
		t.Errorf("%d processes survive", n)
	}
}
