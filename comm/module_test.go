package comm_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const strangersProgram = `package main

import (
	"context"
	"fmt"
	"log"

	"gompi/comm"
)

func main() {
	ctx := context.Background()
	c, err := comm.Init(ctx)
	if err != nil {
		log.Fatal(err)
	}
	x := []float64{1, 2}
	if err := comm.Allreduce(ctx, c, x, x, comm.Sum); err != nil {
		log.Fatal(err)
	}
	fmt.Println(c, x)
	if err := c.Close(ctx); err != nil {
		log.Fatal(err)
	}
}
`

// A program of another module needs a replace line and nothing else, and runs
// without a launcher. Nothing is fetched.
func TestProgramOfAnotherModuleBuildsAndRunsAlone(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds a program")
	}
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
		"main.go": strangersProgram,
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
	build.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	out, err := exec.Command(program).CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "world[0/1] [1 2]" {
		t.Errorf("got %q, %v", out, err)
	}
}
