// Package cudatest builds a CUDA driver that needs no GPU, for tests of users of package cudaops.
// The driver verifies results, and that memory, streams, events and processes are used by the
// rules. The driver cannot test speed, nor whether a real driver accepts the PTX.
//
// testdata/fakecuda.cc documents the checks of the fake, and the variables that make it fail or
// have more devices. Beside it is a fake NCCL, testdata/fakenccl.c.
package cudatest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"gompi/internal/env"
	"gompi/internal/stress"
)

// Use is for TestMain: it builds the fake driver and names the file in the environment, for this
// process and its children. If that fails, Need reports why. With GOMPI_TEST_GPU=1 tests use this
// machine's driver and GPUs instead. kernels are the source files of the driver's kernels.
func Use(kernels ...string) {
	if !cgo || Real() {
		return
	}
	library, err := Build(kernels...)
	nccl, err2 := BuildNCCL()
	switch err := errors.Join(err, err2); {
	case errors.Is(err, errNoCompiler):
		os.Setenv(reason, err.Error())
		return
	case err != nil:
		os.Setenv(fault, err.Error())
		return
	}
	os.Setenv(env.LibCUDA, library)
	os.Setenv(env.LibCUBLAS, library)
	os.Setenv(env.LibNCCL, nccl)
}

// Variables by which Need learns why there is no fake driver: no compiler, or a failed compilation.
const (
	reason = "GOMPI_TEST_NO_FAKE_CUDA"
	fault  = "GOMPI_TEST_BAD_FAKE_CUDA"
)

var errNoCompiler = errors.New("is not installed")

// Real reports whether tests run on real GPUs.
func Real() bool { return os.Getenv("GOMPI_TEST_GPU") == "1" }

// Need skips a test that needs a driver if there is no compiler for the fake, and fails the test if
// the fake does not compile.
func Need(t testing.TB) {
	t.Helper()
	if !cgo {
		t.Skip("the fake CUDA driver is loaded with cgo: CGO_ENABLED=1 go test ./cudaops/...")
	}
	if why := os.Getenv(reason); why != "" {
		t.Skip("no fake CUDA driver: " + why)
	}
	if why := os.Getenv(fault); why != "" {
		t.Fatal("no fake CUDA driver: " + why)
	}
}

// NeedFake skips a test of failures on demand, delays, and devices that this machine does not have:
// only the fake driver has these.
func NeedFake(t testing.TB) {
	t.Helper()
	Need(t)
	if Real() {
		t.Skip("the fake driver alone does what this tests")
	}
}

// Build returns the path of the fake driver with the kernels of the files, which is also a fake
// cuBLAS. New sources or compiler options take some seconds, else the library is in the user's
// cache.
func Build(kernels ...string) (string, error) {
	sources := []string{filepath.Join("testdata", "fakecuda.cc")}
	for _, file := range kernels {
		file, err := filepath.Abs(file)
		if err != nil {
			return "", err
		}
		if file, err = filepath.Rel(here(), file); err != nil {
			return "", err
		}
		sources = append(sources, file)
	}
	args := []string{"-x", "c++", "-std=c++17", "-O1", "-ffp-contract=off", "-fPIC", "-fvisibility=default",
		"-Wno-unknown-pragmas",
		"-I", "..", "-shared", "-pthread"}
	return compile("libfakecuda", "g++", args, sources, filepath.Join("..", "kernel.h"))
}

// BuildNCCL returns the path of the fake NCCL, for processes with the fake driver.
func BuildNCCL() (string, error) {
	args := []string{"-std=gnu11", "-O1", "-fPIC", "-fvisibility=hidden", "-shared", "-pthread"}
	file := func(name string) string { return filepath.Join("testdata", name) }
	return compile("libfakenccl", "gcc", args, []string{file("fakenccl.c"), file("fakenccl_hub.c")}, file("fakenccl.h"))
}

// here is this package's folder, found from the tests' working folder: a test program may not know
// its source (go test -trimpath), and may be of the benchmarks' module.
func here() string {
	for folder, _ := os.Getwd(); ; folder = filepath.Dir(folder) {
		found := filepath.Join(folder, "cudaops", "cudatest")
		if _, err := os.Stat(found); err == nil || folder == filepath.Dir(folder) {
			return found
		}
	}
}

// compile builds a library of sources, which include the headers, or finds the library in the
// cache. Files are named relative to this package's folder, so that checkouts share the cache.
func compile(name, compiler string, args, sources []string, headers ...string) (string, error) {
	args = append(append(args, sources...), "-ldl")
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	cache = filepath.Join(cache, "gompi-test")
	library := filepath.Join(cache, fmt.Sprintf("%s-%s.so", name, hash(args, append(sources, headers...)...)))
	if _, err := os.Stat(library); err == nil {
		return library, nil
	}
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return "", err
	}
	path, err := exec.LookPath(compiler)
	if err != nil {
		return "", fmt.Errorf("%s %w", compiler, errNoCompiler)
	}
	draft, err := os.CreateTemp(cache, "draft")
	if err != nil {
		return "", err
	}
	defer os.Remove(draft.Name())
	draft.Close()
	cc := exec.Command(path, append(args, "-o", draft.Name())...)
	cc.Dir = here()
	if out, err := cc.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %v\n%s", compiler, err, out)
	}
	return library, os.Rename(draft.Name(), library) // packages are tested at the same time
}

// CheckPTX fails the test unless a file equals the output of `make ptx` for its source. CheckPTX
// skips the test if a necessary tool is not installed.
func CheckPTX(t *testing.T, file string) {
	t.Helper()
	stress.Long(t, "compiles all kernels")
	for _, tool := range []string{"make", "clang-14"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed: PTX of the repository is not compared with its source", tool)
		}
	}
	made := t.TempDir()
	if out, err := exec.Command("make", "-C", filepath.Join(here(), "..", ".."), "ptx",
		"PTXDIR="+made).CombinedOutput(); err != nil {
		t.Fatalf("make ptx: %v\n%s", err, out)
	}
	want, err := os.ReadFile(filepath.Join(made, filepath.Base(file)))
	if err != nil {
		t.Fatal(err)
	}
	if kept, err := os.ReadFile(file); err != nil || !bytes.Equal(kept, want) {
		t.Errorf("%s is not what its source gives (%v): run make ptx", file, err)
	}
}

func hash(args []string, files ...string) string {
	h := sha256.New()
	fmt.Fprintln(h, args)
	for _, f := range files {
		b, _ := os.ReadFile(filepath.Join(here(), f)) // the compiler tells what is wrong with it
		h.Write(b)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
