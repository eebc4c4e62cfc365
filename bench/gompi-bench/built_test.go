package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
)

// built builds gompi's programs, once for all tests.
func built(t *testing.T) string {
	t.Helper()
	buildOnce.Do(func() {
		if buildDir, buildErr = os.MkdirTemp("", "gompi-bench-test"); buildErr != nil {
			return
		}
		for module, pkgs := range map[string][]string{"../..": {"./mpirun/gompirun", "./examples/steps"}, ".": {"."}} {
			out, err := exec.Command("go", slices.Concat([]string{"build", "-C", module, "-o", buildDir},
				pkgs)...).CombinedOutput()
			if err != nil {
				buildErr = fmt.Errorf("go build %v: %w\n%s", pkgs, err, out)
			}
		}
	})
	if buildErr != nil {
		t.Fatal(buildErr)
	}
	return buildDir
}

var (
	buildOnce sync.Once
	buildDir  string
	buildErr  error
)
