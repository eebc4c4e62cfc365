package comm_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gompi/internal/stress"
)

// readmeProgram returns the program that README.md shows.
func readmeProgram(t *testing.T, root string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var program strings.Builder
	for line := range strings.Lines(string(page)) {
		code, indented := strings.CutPrefix(line, "    ")
		switch {
		case program.Len() == 0 && !strings.HasPrefix(code, "package main"):
		case indented || line == "\n":
			program.WriteString(code)
		default:
			return program.String()
		}
	}
	t.Fatal("README.md has no program")
	return ""
}

// A program of another module, README's, needs a replace line and nothing else, and runs
// without a launcher. Nothing is fetched.
func TestProgramOfAnotherModuleBuildsAndRunsAlone(t *testing.T) {
	stress.Long(t, "it builds a program")
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"main.go": readmeProgram(t, root),
		"go.sum":  string(sums),
		"go.mod":  "module stranger\n\ngo 1.26\n\nrequire gompi v0.0.0\n\nreplace gompi => " + root + "\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(dir, "stranger")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Dir = dir
	build.Env = append(os.Environ(), "GOFLAGS=-mod=mod -trimpath", /* as .ci/test: what it has compiled serves */
		"GOPROXY=off", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	out, err := exec.Command(program).CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "rank 0 of 1 has the sum 0" {
		t.Errorf("got %q, %v", out, err)
	}
}
