// Package twins runs C functions that have a twin in Go (mpi/libmpi/face) on memory of tests.
// Tests compare the memory after both, and fail if only one of the twins was changed.
package twins

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// C is a process that runs the functions of testdata/twins.c.
type C struct {
	t    *testing.T
	to   io.Writer
	from io.Reader
}

// Start builds the program and runs it until the test ends.
func Start(t *testing.T) *C {
	t.Helper()
	if _, err := exec.LookPath("cc"); err != nil || runtime.GOOS != "linux" {
		t.Skip("needs cc, on Linux")
	}
	face := faceFolder(t)
	ours := filepath.Join(face, "../twins/testdata")
	for _, folder := range []string{face, filepath.Join(face, ".."), ours} {
		os.ReadDir(folder) // go test keeps no result from before a change there
	}
	program := filepath.Join(t.TempDir(), "twins")
	build := exec.Command("cc", "-O1", "-Wall", "-Wextra", "-Werror", "-DGOMPI_STANDARD", "-isystem", ours, "-I",
		face, "-pthread",
		"-o", program, filepath.Join(ours, "twins.c"), filepath.Join(face, "collectives.c"),
		filepath.Join(face, "windows.c"),
		filepath.Join(face, "counted.c"), "-ldl")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%q: %v\n%s", build.Args, err, out)
	}
	run := exec.Command(program)
	run.Stderr = os.Stderr
	to, err := run.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	from, err := run.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		to.Close() // the program ends
		if err := run.Wait(); err != nil {
			t.Errorf("twins: %v", err)
		}
	})
	return &C{t, to, from}
}

// faceFolder returns mpi/libmpi/face, from the folder of any package of the module.
func faceFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	for ; err == nil; dir = filepath.Dir(dir) {
		face := filepath.Join(dir, "mpi/libmpi/face")
		if _, err := os.Stat(face); err == nil {
			return face
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("mpi/libmpi/face is in no folder above")
		}
	}
	t.Fatal(err)
	return ""
}

// arguments bounds the number of a function's arguments.
const arguments = 6

// Call has C run a function on memory, and returns the function's result.
func (c *C) Call(function string, memory []byte, args ...uint64) uint64 {
	c.t.Helper()
	var request bytes.Buffer
	var name [32]byte
	var all [arguments]uint64
	copy(name[:], function)
	copy(all[:], args)
	request.Write(name[:])
	for _, x := range append(all[:], uint64(len(memory))) {
		binary.Write(&request, binary.NativeEndian, x)
	}
	request.Write(memory)
	if _, err := c.to.Write(request.Bytes()); err != nil {
		c.t.Fatalf("%s in C: %v", function, err)
	}
	var result uint64
	if err := binary.Read(c.from, binary.NativeEndian, &result); err != nil {
		c.t.Fatalf("%s in C: %v", function, err)
	}
	if _, err := io.ReadFull(c.from, memory); err != nil {
		c.t.Fatalf("%s in C: %v", function, err)
	}
	return result
}
