package cudann

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"gompi/comm"
	"gompi/comm/ddp"
	"gompi/cudaops"
	"gompi/cudaops/cudatest"
	"gompi/examples/internal/nn"
	"gompi/examples/train/internal/bytelm"
)

func TestMain(m *testing.M) {
	cudatest.Use("network.cu")
	os.Exit(m.Run())
}

func TestPTXIsWhatTheSourceGives(t *testing.T) { cudatest.CheckPTX(t, "network_sm75.ptx") }

// The parameters of the kernels have in C the size that they have here, and kernels keep their
// working values in registers.
func TestParametersAreThoseOfTheKernels(t *testing.T) {
	sizes := map[string]uintptr{
		"lookup": unsafe.Sizeof(lookupArgs{}), "lookup_gradient": unsafe.Sizeof(lookupArgs{}),
		"activate": unsafe.Sizeof(layerArgs{}), "bias_gradient": unsafe.Sizeof(layerArgs{}),
		"relu_gradient": unsafe.Sizeof(reluArgs{}),
		"cross_entropy": unsafe.Sizeof(lossArgs{}), "adam": unsafe.Sizeof(adamArgs{}),
		"product": unsafe.Sizeof(productArgs{}),
	}
	for _, name := range names {
		param := regexp.MustCompile(`\.entry ` + name + `\(\s*\.param \.align \d+ \.b8 ` + name +
			`_param_0\[(\d+)\]`).FindStringSubmatch(ptx)
		if param == nil || param[1] != fmt.Sprint(sizes[name]) {
			t.Errorf("the parameter of %s is %v, want %d bytes", name, param, sizes[name])
		}
	}
	if strings.Contains(ptx, ".local") {
		t.Error("a kernel uses local memory")
	}
}

func device(t *testing.T) *cudaops.Device {
	t.Helper()
	cudatest.Need(t)
	d, err := cudaops.Open(0)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

var shape = bytelm.Shape{Context: 3, Width: 5, Hidden: []int{17, 9}, Rows: 40, Workers: 1}

// newNetwork returns a Network whose gradients have memory, with products by cuBLAS
// or by the kernel.
func newNetwork(t *testing.T, d *cudaops.Device, blas bool) *Network {
	t.Helper()
	n, err := New(d, shape, 3)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil && !t.Failed() {
			t.Error(err)
		}
	})
	if blas && n.e.blas == nil {
		t.Skip(n.Products())
	}
	if !blas && n.e.blas != nil {
		if err := n.e.blas.Close(); err != nil {
			t.Fatal(err)
		}
		n.e.blas = nil
	}
	for _, p := range n.Params() {
		p.Grad = alloc[float32](n.e, p.Data.Len())
	}
	return n
}

func samples(n int) (contexts, targets []byte) {
	rng := rand.New(rand.NewPCG(7, 7))
	for range n {
		for range shape.Context {
			contexts = append(contexts, byte(rng.IntN(20)))
		}
		targets = append(targets, byte(rng.IntN(256)))
	}
	return contexts, targets
}

// tolerance is how far numbers of device and host may lie apart: products are added
// up in another order, and powers of two have 22 bits.
const tolerance = 1e-5

func near(t *testing.T, what string, got cudaops.Buffer, want []float32) {
	t.Helper()
	host := make([]float32, len(want))
	if err := got.Space().Copy(comm.Of(host), got); err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if !(math.Abs(float64(host[i]-want[i])) <= tolerance*(1+math.Abs(float64(want[i])))) {
			t.Fatalf("%s: number %d is %v, want %v", what, i, host[i], want[i])
		}
	}
}

// Losses and gradients of passes of several sizes, which add up, none of them too.
func TestNetworkIsThatOfTheHost(t *testing.T) {
	for _, blas := range []bool{true, false} {
		t.Run(map[bool]string{true: "cuBLAS", false: "kernel"}[blas], func(t *testing.T) {
			host, n := bytelm.New(shape, 3), newNetwork(t, device(t), blas)
			for i, p := range n.Params() {
				near(t, "first "+p.Name, p.Data, host.Params()[i].Data)
			}
			contexts, targets := samples(shape.Rows)
			for _, rows := range []int{shape.Rows, 0, 1, 23} {
				var order, want []int
				wantLoss := host.Backward(contexts[:rows*shape.Context], targets[:rows], 0.25,
					func(i int) { want = append(want, i) })
				loss, err := n.Backward(contexts[:rows*shape.Context], targets[:rows], 0.25,
					func(i int) { order = append(order, i) })
				if err != nil || math.Abs(loss-wantLoss) > tolerance*(1+wantLoss) || !slices.Equal(order, want) {
					t.Fatalf("%d samples: loss %v, order %v (%v), want %v and %v", rows, loss, order, err,
						wantLoss, want)
				}
			}
			if err := n.Stream().Sync(); err != nil {
				t.Fatal(err)
			}
			for i, p := range n.Params() {
				near(t, "gradient of "+p.Name, p.Grad, host.Params()[i].Grad)
			}
			loss, right, err := n.Evaluate(contexts, targets)
			want, wantRight := host.Evaluate(contexts, targets)
			if err != nil || math.Abs(loss-want) > tolerance*want || right != wantRight {
				t.Errorf("loss alone is %v with %d right (%v), want %v with %d", loss, right, err, want, wantRight)
			}
		})
	}
}

// The optimiser makes the same operations on each number as the host's, so the same
// bits, and saves the same names.
func TestAdamIsThatOfTheHostBitForBit(t *testing.T) {
	n := newNetwork(t, device(t), true)
	host := bytelm.New(shape, 3)
	want, err := nn.NewAdam(host.Params()), error(nil)
	got, err := NewAdam(n)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(5, 5))
	for step := range int64(3) {
		for i, p := range host.Params() {
			for j := range p.Grad {
				p.Grad[j] = float32(rng.NormFloat64())
			}
			if err := n.e.d.Copy(n.Params()[i].Grad, comm.Of(p.Grad)); err != nil {
				t.Fatal(err)
			}
		}
		want.Step(step+1, 0.1)
		if err := got.Step(step+1, 0.1); err != nil {
			t.Fatal(err)
		}
		if err := n.Stream().Sync(); err != nil {
			t.Fatal(err)
		}
	}
	same := func(name string, got, want comm.Buffer) {
		t.Helper()
		numbers := make([]float32, got.Len())
		if err := n.e.d.Copy(comm.Of(numbers), got); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(numbers, comm.Slice[float32](want)) {
			t.Errorf("%s differs from the host's", name)
		}
	}
	for i, p := range host.Params() {
		same(p.Name, n.Params()[i].Data, comm.Of(p.Data))
	}
	memory := got.Memory()
	if !slices.EqualFunc(memory, want.Memory(), func(a, b ddp.Slice) bool { return a.Name == b.Name }) {
		t.Errorf("other names are saved than on the host")
	}
	for i, w := range want.Memory() {
		same(w.Name, memory[i].Data, w.Data)
	}
}

func TestHugeLogitsDoNotOverflow(t *testing.T) {
	n := newNetwork(t, device(t), true)
	logits := make([]float32, 256)
	logits[1], logits[2] = 1e4, -1e4
	y := n.layers[len(n.layers)-1].y
	for target, want := range map[byte]float64{1: 0, 2: 2e4} {
		if err := n.e.d.Copy(y.Slice(0, 256), comm.Of(logits)); err != nil {
			t.Fatal(err)
		}
		n.crossEntropy([]byte{target}, 1)
		if got, err := n.losses.sum(1); err != nil || got != want {
			t.Errorf("loss of target %d is %v (%v), want %v", target, got, err, want)
		}
	}
}

func TestFailuresAreReportedAndLeaveNoMemory(t *testing.T) {
	cudatest.NeedFake(t)
	d := device(t)
	before, _, err := d.Memory()
	if err != nil {
		t.Fatal(err)
	}
	contexts, targets := samples(4)
	for _, c := range []struct{ fail, want string }{
		{"cuModuleLoadDataEx:1=218", "cuModuleLoadDataEx: CUDA_ERROR_INVALID_PTX"},
		{"cuModuleGetFunction:3=500", "kernel activate: cuModuleGetFunction"},
		{"cuMemAlloc_v2:5=2", "cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY"},
		{"cuMemAllocHost_v2:2=2", "cuMemAllocHost_v2: CUDA_ERROR_OUT_OF_MEMORY"},
		{"cublasCreate_v2:1=3", "cublasCreate_v2: CUBLAS_STATUS_ALLOC_FAILED"},
		{"cuLaunchKernel:6=719", "launch: cuLaunchKernel: CUDA_ERROR_LAUNCH_FAILED"},
		{"cublasSgemm_v2:4=7", "product: cublasSgemm_v2: CUBLAS_STATUS_INVALID_VALUE"},
	} {
		t.Setenv("FAKECUDA_FAIL", c.fail)
		err := func() error {
			n, err := New(d, shape, 1)
			if err != nil {
				return err
			}
			for _, p := range n.Params() {
				p.Grad = alloc[float32](n.e, p.Data.Len())
			}
			_, err = n.Backward(contexts, targets, 1, func(int) {})
			if closing := n.Close(); closing == nil || err == nil {
				t.Errorf("%s: Backward says %v, Close %v: want the error from both", c.fail, err, closing)
			}
			return err
		}()
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "cuda:0") {
			t.Errorf("%s: %v, want %q", c.fail, err, c.want)
		}
	}
	t.Setenv("FAKECUDA_FAIL", "")
	if after, _, err := d.Memory(); err != nil || after != before {
		t.Errorf("%d bytes are free, %d were before (%v)", after, before, err)
	}
}
