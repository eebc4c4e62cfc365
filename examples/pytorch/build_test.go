//go:build linux

package pytorch

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// programs are in one folder, each built once.
var programs = struct {
	sync.Mutex
	dir   string
	built map[string]bool
}{built: map[string]bool{}}

// build returns the path of a program of this module, whose package is given without the module's
// name.
func build(t *testing.T, pkg string) string {
	t.Helper()
	programs.Lock()
	defer programs.Unlock()
	path := filepath.Join(programs.dir, filepath.Base(pkg))
	if programs.built[pkg] {
		return path
	}
	if out, err := exec.Command("go", "build", "-o", path, "gompi/"+pkg).CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	programs.built[pkg] = true
	return path
}

func TestMain(m *testing.M) {
	var err error
	if programs.dir, err = os.MkdirTemp("", "pytorch"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	status := m.Run()
	os.RemoveAll(programs.dir)
	os.Exit(status)
}
