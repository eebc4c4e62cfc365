package cudaops_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gompi/comm"
	"gompi/cudaops"
	"gompi/cudaops/cudatest"
	"gompi/internal/mem"
)

// Tests that need a process of their own, as a process opens the driver once, or several processes,
// run jobs: TestMain of a child does the job that the variable names.
const jobVariable = "GOMPI_TEST_CUDA_JOB"

var jobs = map[string]func() error{
	"devices": jobDevices,
	"twice":   jobTwice,
	"astray":  jobAstray,
	"rank":    jobRank,
	"failing": jobFailing,
	"blas":    jobBLAS,

	"collectives": jobCollectives,
	"dying":       jobDying,
	"nccl":        jobNCCL,
	"ncclDying":   jobNCCLDying,
}

func child(name string) int {
	if err := jobs[name](); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// run runs a job with additions to the environment and returns its output.
func run(t *testing.T, job string, environment ...string) string {
	t.Helper()
	out, _ := command(job, environment...).Output()
	return strings.TrimSpace(string(out))
}

func command(job string, environment ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), jobVariable+"="+job), environment...)
	cmd.Stderr = os.Stderr
	return cmd
}

func jobDevices() error {
	if b, err := cudaops.At(pointerTo(make([]float32, 3)), mem.F32, 3); err != nil || !b.IsHost() {
		return fmt.Errorf("host memory was found in %s (%v)", b.Space().Name(), err)
	}
	_, err := cudaops.Devices()
	if _, again := cudaops.Open(0); err != nil && again.Error() != err.Error() {
		return fmt.Errorf("%v, and then %v", err, again)
	}
	return err
}

// Without a driver, or with one that does not work, there is one error, and host
// memory is host memory.
func TestWithoutADriverOneErrorSaysWhy(t *testing.T) {
	cudatest.NeedFake(t)
	for environment, want := range map[string]string{
		"GOMPI_LIBCUDA=/nowhere/libcuda.so.1": "no CUDA: /nowhere/libcuda.so.1: cannot open shared object file: No such file or directory",
		"GOMPI_LIBCUDA=libc.so.6":             "no CUDA: libc.so.6 has no function cuInit",
		"FAKECUDA_DEVICES=0":                  "no CUDA: cuInit: CUDA_ERROR_NO_DEVICE (100): no CUDA-capable device is detected",
		"FAKECUDA_INIT=34":                    "no CUDA: cuInit: CUDA_ERROR_STUB_LIBRARY (34): CUDA driver is a stub library",
		"FAKECUDA_INIT=803":                   "no CUDA: cuInit: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803): system has unsupported display driver / cuda driver combination",
		"FAKECUDA_INIT=999":                   "no CUDA: cuInit: CUDA_ERROR_UNKNOWN (999): unknown error",
		"FAKECUDA_FAIL=cuDeviceGetName:2=101": "no CUDA: device 1: cuDeviceGetName: CUDA_ERROR_INVALID_DEVICE (101): invalid device ordinal",
		"FAKECUDA_DEVICES=8":                  "",
	} {
		if got := run(t, "devices", environment); got != want {
			t.Errorf("%s: %q, want %q", environment, got, want)
		}
	}
}

func jobTwice() error {
	d, err := cudaops.Open(0)
	if err != nil {
		return err
	}
	v, err := cudaops.Upload(d, []float32{1, 2, 3})
	if err != nil {
		return err
	}
	if err := doubled(d, v.Buffer()); err != nil {
		return err
	}
	got := make([]float32, 3)
	err = v.CopyTo(got)
	return errors.Join(err, fmt.Errorf("%v", got))
}

// doubled doubles b on d.
func doubled(d *cudaops.Device, b mem.Buffer) error {
	s, err := d.NewStream()
	if err != nil {
		return err
	}
	m, err := d.LoadPTX(twice)
	if err != nil {
		return err
	}
	k, err := m.Kernel("twice")
	if err != nil {
		return err
	}
	return errors.Join(launchTwice(s, k, b), s.Sync())
}

// Text for devices of capability 7.5 is refused by an older one, which says why.
func TestOlderDevicesRefuseNewerKernels(t *testing.T) {
	cudatest.NeedFake(t)
	for environment, want := range map[string]string{
		"FAKECUDA_SM=75": "[2 4 6]",
		"FAKECUDA_SM=70": "cuda:0: loading a module: cuModuleLoadDataEx: CUDA_ERROR_NO_BINARY_FOR_GPU (209): " +
			"no kernel image is available for execution on the device: the fake's compiler does not like it",
	} {
		if got := run(t, "twice", environment); got != want {
			t.Errorf("%s: %q, want %q", environment, got, want)
		}
	}
}

func jobAstray() error {
	d, err := cudaops.Open(0)
	if err != nil {
		return err
	}
	v, err := cudaops.Make[float32](d, 3)
	if err != nil {
		return err
	}
	wrong := mem.Device(d, v.Buffer().Addr()+1<<12, mem.F32, 3)
	return errors.Join(doubled(d, wrong), v.CopyTo(make([]float32, 3)))
}

// A kernel that leaves its memory breaks the device for the process; every later
// call says so.
func TestAKernelThatFailsIsReportedEverywhere(t *testing.T) {
	cudatest.NeedFake(t)
	got := strings.Split(run(t, "astray"), "\n")
	if len(got) != 2 || !strings.HasPrefix(got[0], "cuda:0: stream: ") ||
		!strings.HasPrefix(got[1], "cuda:0: copy of 12 bytes ") ||
		strings.Count(strings.Join(got, ""), "CUDA_ERROR_ILLEGAL_ADDRESS (700)") != 2 {
		t.Errorf("%q", got)
	}
}

// joined joins the job, and returns this rank's device.
func joined(ctx context.Context) (*comm.Comm, *cudaops.Device, error) {
	c, err := comm.Init(ctx)
	if err != nil {
		return nil, nil, err
	}
	devices, err := cudaops.Devices()
	if err != nil {
		return nil, nil, err
	}
	return c, devices[c.Rank()%len(devices)], nil
}

// jobRank is a rank of TestRanksOfAJobUseTheDevicesOfTheirHost.
func jobRank() error {
	ctx := context.Background()
	c, d, err := joined(ctx)
	if err != nil {
		return err
	}
	if err := rank(ctx, c, d); err != nil {
		return c.Abort(1, err.Error())
	}
	return c.Close(ctx)
}

func rank(ctx context.Context, c *comm.Comm, d *cudaops.Device) error {
	for _, n := range []int{1, 1000, 300_000} {
		mine := make([]float32, n)
		for i := range mine {
			mine[i] = float32(c.Rank() + i%100)
		}
		v, err := cudaops.Upload(d, mine)
		if err != nil {
			return err
		}
		if err := c.Allreduce(ctx, v.Buffer(), v.Buffer(), comm.Sum); err != nil {
			return err
		}
		right, left := (c.Rank()+1)%c.Size(), (c.Rank()+c.Size()-1)%c.Size()
		w, err := cudaops.Make[float32](d, n)
		if err != nil {
			return err
		}
		if _, err := c.Sendrecv(ctx, right, 0, v.Buffer(), left, 0, w.Buffer()); err != nil {
			return err
		}
		if err := w.CopyTo(mine); err != nil {
			return err
		}
		v.Free()
		w.Free()
		for i, x := range mine {
			if want := float32(c.Size()*(c.Size()-1)/2 + c.Size()*(i%100)); x != want {
				return fmt.Errorf("element %d of %d is %v, want %v", i, n, x, want)
			}
		}
	}
	return nil
}

// Ranks that are processes, started by gompirun, put device memory into messages
// and collectives.
func TestRanksOfAJobUseTheDevicesOfTheirHost(t *testing.T) {
	device(t)
	if testing.Short() {
		runRanks(t, "rank", "4")
		return
	}
	runRanks(t, "rank", "1", "2", "4", "8")
}

// runRanks starts a job by gompirun with each of the numbers of ranks.
func runRanks(t *testing.T, job string, numbers ...string) {
	t.Helper()
	for _, np := range numbers {
		if out, err := startRanks(t, job, np); err != nil {
			t.Errorf("np=%s: %v\n%s", np, err, out)
		}
	}
}

// startRanks runs a job by gompirun and returns its output.
func startRanks(t *testing.T, job, np string, environment ...string) (string, error) {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, launcher(t, self), "-np", np, "-oversubscribe", self)
	cmd.Env = append(append(os.Environ(), jobVariable+"="+job), environment...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// jobFailing is a rank of TestADeviceThatFailsIsReportedToAllRanks.
func jobFailing() error {
	ctx := context.Background()
	c, err := comm.Init(ctx)
	if err != nil {
		return err
	}
	defer c.Close(ctx) // tells that c is broken, as this job expects
	d, err := cudaops.Open(0)
	if err != nil {
		return err
	}
	v, err := cudaops.Make[float32](d, 100)
	if err != nil {
		return err
	}
	if c.Rank() == 2 {
		os.Setenv("FAKECUDA_FAIL", "cuMemcpyAsync:1=719")
	}
	err = c.Allreduce(ctx, v.Buffer(), v.Buffer(), comm.Sum)
	if err == nil || !strings.Contains(err.Error(),
		"cuda:0: copy of 400 bytes from cuda:0 to host: cuMemcpyAsync: CUDA_ERROR_LAUNCH_FAILED (719)") {
		return fmt.Errorf("rank %d: %v", c.Rank(), err)
	}
	return nil
}

// A device that fails on one rank, inside a collective through shared memory, ends
// it everywhere.
func TestADeviceThatFailsIsReportedToAllRanks(t *testing.T) {
	cudatest.NeedFake(t)
	runRanks(t, "failing", "4")
}

// launcher returns a gompirun: the one beside self, if both were carried to a
// machine without Go, or one built for the test.
func launcher(t *testing.T, self string) string {
	t.Helper()
	beside := filepath.Join(filepath.Dir(self), "gompirun")
	if _, err := os.Stat(beside); err == nil {
		return beside
	}
	built, err := builtLauncher()
	must(t, err)
	return built
}

// builtLauncher builds a gompirun, once, in a folder that TestMain removes.
var builtLauncher = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "gompirun")
	if err != nil {
		return "", err
	}
	cleanUp = func() { os.RemoveAll(dir) }
	cmd := exec.Command("go", "build", "-o", dir, "gompi/mpirun/gompirun")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %v\n%s", err, out)
	}
	return filepath.Join(dir, "gompirun"), nil
})

// cleanUp removes the files that tests have built.
var cleanUp = func() {}
