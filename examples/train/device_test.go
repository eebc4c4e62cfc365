package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gompi/cudaops"
	"gompi/cudaops/cudatest"
)

func TestMain(m *testing.M) {
	cudatest.Use("internal/cudann/network.cu")
	os.Exit(m.Run())
}

// onDevices is small on GPUs, which ranks take in turn: ranks share one, and there
// are two, where the machine has.
func onDevices() config {
	cfg := small()
	cfg.device = "cuda"
	return cfg
}

// deviceTolerance is how far losses of devices may be from the host's, relative to
// them, after 20 steps: products are added up in another order there, and the powers
// of softmax have 22 bits.
const deviceTolerance = 1e-4

func TestDevicesFollowTheCurveOfTheHost(t *testing.T) {
	cudatest.Need(t)
	want := trained(t, 1, small())
	for _, n := range []int{1, 2, 4} {
		sameCurve(t, fmt.Sprintf("%d ranks", n), trained(t, n, onDevices()), want, deviceTolerance)
	}
	parts := onDevices()
	parts.accumulate = 3
	sameCurve(t, "2 ranks in 3 passes", trained(t, 2, parts), want, deviceTolerance)
}

func TestRunsOnDevicesAreEqualBitForBit(t *testing.T) {
	cudatest.Need(t)
	want := saved(t, 3, onDevices())
	if !bytes.Equal(saved(t, 3, onDevices()), want) {
		t.Error("the same run again ends with other parameters")
	}
	after := onDevices()
	after.overlap = false
	if !bytes.Equal(saved(t, 3, after), want) {
		t.Error("without overlap the run ends with other parameters")
	}
}

func TestTrainingContinuesFromHostToDeviceAndBack(t *testing.T) {
	cudatest.Need(t)
	want := trained(t, 2, small())
	cfg := small()
	cfg.snapshot, cfg.saveEvery = filepath.Join(t.TempDir(), "snapshot"), 3
	interrupted(t, 2, cfg, 8)
	cfg.device = "cuda"
	interrupted(t, 3, cfg, 14)
	cfg.device = "host"
	got := trained(t, 2, cfg)
	if first := got.curve[0].step; first != 13 {
		t.Fatalf("the run goes on with step %d, want 13", first)
	}
	want.curve = want.curve[12:]
	sameCurve(t, "on the host again", got, want, deviceTolerance)
}

func TestWithoutADriverTheErrorSaysWhy(t *testing.T) {
	_, why := cudaops.Devices()
	if why == nil {
		t.Skip("there is a driver")
	}
	var out, errs bytes.Buffer
	status := run(strings.Fields("-data . -steps 1 -batch 8 -device cuda"), &out, &errs)
	if want := "train: rank 0: -device cuda: " + why.Error() + "\n"; status != 1 || errs.String() != want {
		t.Errorf("status %d, %q; want 1 and %q", status, &errs, want)
	}
}
