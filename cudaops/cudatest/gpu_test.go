package cudatest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gompi/cudaops/cudatest"
	"gompi/internal/env"
	"gompi/internal/stress"
)

// The programs of `make gpu` run from their folder alone and ask nothing: on the fake driver, whose
// times they do not show.
func TestFolderForGPUsRunsUnattended(t *testing.T) {
	stress.Long(t, "builds and runs all that `make gpu` carries")
	cudatest.NeedFake(t)
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("make is not installed")
	}
	fake, err := cudatest.Build(filepath.Join("..", "testdata", "twice.cu"),
		filepath.Join("..", "..", "examples", "train", "internal", "cudann", "network.cu"))
	if err != nil {
		t.Fatal(err)
	}
	nccl, err := cudatest.BuildNCCL()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if out, err := exec.Command("make", "-C", filepath.Join("..", ".."), "gpu",
		"BIN="+bin).CombinedOutput(); err != nil {
		t.Fatalf("make gpu: %v\n%s", err, out)
	}
	run := func(driver string, parts ...string) (string, int) {
		cmd := exec.Command(filepath.Join(bin, "gpu", "run"), parts...)
		cmd.Dir = "/"
		cmd.Env = append(os.Environ(), "QUICK=1", "OUT="+filepath.Join(bin, "out"), env.LibCUDA+"="+driver,
			env.LibCUBLAS+"="+driver, env.LibNCCL+"="+nccl)
		out, _ := cmd.CombinedOutput()
		return string(out), cmd.ProcessState.ExitCode()
	}

	out, status := run(fake)
	if status != 0 || strings.Contains(out, "FAILED") {
		t.Errorf("status %d\n%s", status, out)
	}
	for _, part := range []string{"check", "coll", "train", "bench"} {
		if !regexp.MustCompile(`(?m)^` + part + ` .* passed `).MatchString(out) {
			t.Errorf("nothing of part %s has passed:\n%s", part, out)
		}
	}
	for _, step := range []string{"coll +nccl", "coll +nccl-bench", "bench +allreduce-by-nccl-2"} {
		if !regexp.MustCompile(`(?m)^` + step + ` +passed `).MatchString(out) {
			t.Errorf("NCCL has done nothing in %s:\n%s", step, out)
		}
	}
	if !strings.Contains(out, "\nfake driver: ") && !strings.HasPrefix(out, "fake driver: ") ||
		regexp.MustCompile(`GB/s|Benchmark|usec`).MatchString(out) {
		t.Errorf("the report shows times of the fake driver, or does not say that it is one:\n%s", out)
	}
	if lines := strings.Split(strings.TrimSpace(out), "\n"); !strings.HasPrefix(lines[len(lines)-1], "peers ") {
		t.Errorf("the last line is %q, want the table's", lines[len(lines)-1])
	}

	if out, status := run(fake, "check", "nosuch"); status != 2 ||
		!strings.Contains(out, `part "nosuch": want some of check,`) {
		t.Errorf("an unknown part: status %d\n%s", status, out)
	}
	if out, status := run("/nowhere/libcuda.so.1", "check"); status != 1 ||
		!strings.Contains(out, "no CUDA: /nowhere/libcuda.so.1") {
		t.Errorf("without a driver: status %d\n%s", status, out)
	}
}
