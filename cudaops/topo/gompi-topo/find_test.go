//go:build linux && cgo

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxa100"

	"gompi/cudaops/topo"
)

// TestMain is the program itself where a test has started it under its name.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "gompi-topo" {
		main()
	}
	os.Exit(m.Run())
}

// dgx is a server of eight GPUs, four for each processor, joined by NVSwitches. Functions that
// go-nvml's mock leaves out, and that panic, are filled in.
func dgx() *dgxa100.Server {
	s := dgxa100.New()
	for i, d := range s.Devices {
		d := d.(*dgxa100.Device)
		d.UUID = fmt.Sprintf("GPU-%d", i)
		d.GetPciInfoFunc = func() (nvml.PciInfo, nvml.Return) {
			return nvml.PciInfo{Domain: 0, Bus: uint32(0x10*i + 7)}, nvml.SUCCESS
		}
		d.MemoryInfo.Used = uint64(i) << 30
		d.GetUtilizationRatesFunc = func() (nvml.Utilization, nvml.Return) {
			return nvml.Utilization{Gpu: uint32(10 * i), Memory: 1}, nvml.SUCCESS
		}
		d.GetComputeModeFunc = func() (nvml.ComputeMode, nvml.Return) { return nvml.COMPUTEMODE_DEFAULT, nvml.SUCCESS }
		d.GetCpuAffinityWithinScopeFunc = func(cpus int, _ nvml.AffinityScope) ([]uint, nvml.Return) {
			set := make([]uint, (cpus-1)/8+1)
			for cpu := range 64 {
				set[(i/4*64+cpu)/64] |= 1 << (cpu % 64)
			}
			return set, nvml.SUCCESS
		}
		d.GetTopologyCommonAncestorFunc = func(o nvml.Device) (nvml.GpuTopologyLevel, nvml.Return) {
			switch j := o.(*dgxa100.Device).Index; {
			case i/2 == j/2:
				return nvml.TOPOLOGY_MULTIPLE, nvml.SUCCESS
			case i/4 == j/4:
				return nvml.TOPOLOGY_NODE, nvml.SUCCESS
			}
			return nvml.TOPOLOGY_SYSTEM, nvml.SUCCESS
		}
		d.GetNvLinkStateFunc = func(link int) (nvml.EnableState, nvml.Return) {
			if link >= 12 {
				return nvml.FEATURE_DISABLED, nvml.ERROR_INVALID_ARGUMENT
			}
			return nvml.FEATURE_ENABLED, nvml.SUCCESS
		}
		d.GetNvLinkRemoteDeviceTypeFunc = func(int) (nvml.IntNvLinkDeviceType, nvml.Return) {
			return nvml.NVLINK_DEVICE_TYPE_SWITCH, nvml.SUCCESS
		}
	}
	return s
}

func device(s *dgxa100.Server, i int) *dgxa100.Device { return s.Devices[i].(*dgxa100.Device) }

func TestAServerOfEightIsDescribed(t *testing.T) {
	h := ask(dgx())
	if h.Driver != "550.54.15" || len(h.Devices) != 8 || h.Trouble != "" || h.Warnings != nil {
		t.Fatalf("%+v", h)
	}
	busy := 50
	want := topo.Device{
		Index: 5, PCI: "0000:57:00.0", UUID: "GPU-5", Name: "Mock NVIDIA A100-SXM4-40GB", Memory: 40 << 30,
		Used: 5 << 30, Busy: &busy, Mode: topo.Shared, NUMA: -1, CPUs: "64-127",
	}
	if !reflect.DeepEqual(h.Devices[5], want) {
		t.Errorf("%+v, want %+v", h.Devices[5], want)
	}
	for j, want := range map[int]topo.Link{
		4: {Level: topo.Switches, NVLinks: 12}, 5: {}, 6: {Level: topo.Node, NVLinks: 12},
		0: {Level: topo.System, NVLinks: 12},
	} {
		if h.Links[5][j] != want {
			t.Errorf("link 5 to %d: %+v, want %+v", j, h.Links[5][j], want)
		}
	}
}

func TestDirectNVLinksAreCounted(t *testing.T) {
	s := dgx()
	// GPU 0 and 1 are joined by two links, one of which is down.
	for i := range s.Devices {
		d := device(s, i)
		d.GetNvLinkStateFunc = func(link int) (nvml.EnableState, nvml.Return) {
			switch {
			case i > 1 || link > 2:
				return nvml.FEATURE_DISABLED, nvml.ERROR_NOT_SUPPORTED
			case link == 1:
				return nvml.FEATURE_DISABLED, nvml.SUCCESS
			}
			return nvml.FEATURE_ENABLED, nvml.SUCCESS
		}
		d.GetNvLinkRemoteDeviceTypeFunc = func(int) (nvml.IntNvLinkDeviceType, nvml.Return) {
			return nvml.NVLINK_DEVICE_TYPE_GPU, nvml.SUCCESS
		}
		d.GetNvLinkRemotePciInfoFunc = func(int) (nvml.PciInfo, nvml.Return) { return device(s, 1-i).GetPciInfo() }
	}
	h := ask(s)
	if n := h.Links[0][1].NVLinks; n != 2 || h.Links[1][0].NVLinks != 2 || h.Links[0][2].NVLinks != 0 {
		t.Errorf("%d NVLinks from 0 to 1, want 2, and none to others: %+v", n, h.Links)
	}
}

func TestSlicesAreListed(t *testing.T) {
	s := dgx()
	d := device(s, 2)
	d.MigMode = nvml.DEVICE_MIG_ENABLE
	d.GetMaxMigDeviceCountFunc = func() (int, nvml.Return) { return 7, nvml.SUCCESS }
	d.GetMigDeviceHandleByIndexFunc = func(k int) (nvml.Device, nvml.Return) {
		if k == 0 || k > 2 {
			return nil, nvml.ERROR_NOT_FOUND
		}
		return &mock.Device{
			GetUUIDFunc:       func() (string, nvml.Return) { return fmt.Sprintf("MIG-%d", k), nvml.SUCCESS },
			GetNameFunc:       func() (string, nvml.Return) { return "1g.5gb", nvml.SUCCESS },
			GetMemoryInfoFunc: func() (nvml.Memory, nvml.Return) { return nvml.Memory{}, nvml.ERROR_NO_PERMISSION },
		}, nvml.SUCCESS
	}
	h := ask(s)
	want := []topo.Slice{{UUID: "MIG-1", Name: "1g.5gb"}, {UUID: "MIG-2", Name: "1g.5gb"}}
	if got := h.Devices[2]; !got.MIG || !reflect.DeepEqual(got.Slices, want) {
		t.Errorf("%+v, want %v", got, want)
	}
	if h.Devices[3].MIG {
		t.Error("GPU 3 is cut")
	}
}

// Every question but which devices there are may remain without an answer.
func TestWhatIsNotReportedIsLeftOut(t *testing.T) {
	s := dgx()
	s.LookupSymbolFunc = func(symbol string) error { return fmt.Errorf("no %s", symbol) }
	h := ask(s)
	if len(h.Devices) != 8 || h.Driver != "" || h.Trouble != "" ||
		!reflect.DeepEqual(h.Devices[3], topo.Device{Index: 3, NUMA: -1}) {
		t.Errorf("%+v", h)
	}
	s = dgx()
	d := device(s, 3)
	d.GetMemoryInfoFunc = func() (nvml.Memory, nvml.Return) { return nvml.Memory{}, nvml.ERROR_NOT_SUPPORTED }
	d.GetComputeModeFunc = func() (nvml.ComputeMode, nvml.Return) { return 0, nvml.ERROR_FUNCTION_NOT_FOUND }
	d.GetCpuAffinityWithinScopeFunc = func(int, nvml.AffinityScope) ([]uint, nvml.Return) {
		return nil, nvml.ERROR_NOT_SUPPORTED
	}
	d.GetMigModeFunc = func() (int, int, nvml.Return) { return 0, 0, nvml.ERROR_NOT_SUPPORTED }
	d.GetUtilizationRatesFunc = func() (nvml.Utilization, nvml.Return) {
		return nvml.Utilization{Gpu: 7}, nvml.ERROR_NOT_SUPPORTED
	}
	want := topo.Device{Index: 3, PCI: "0000:37:00.0", UUID: "GPU-3", Name: "Mock NVIDIA A100-SXM4-40GB",
		NUMA: -1}
	if got := ask(s).Devices[3]; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestDevicesThatCannotBeUsed(t *testing.T) {
	s := dgx()
	device(s, 1).GetNameFunc = func() (string, nvml.Return) { return "", nvml.ERROR_GPU_IS_LOST }
	all := s.DeviceGetHandleByIndexFunc
	s.DeviceGetHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
		switch i {
		case 0:
			return nil, nvml.ERROR_NO_PERMISSION
		case 7:
			return nil, nvml.ERROR_RESET_REQUIRED
		}
		return all(i)
	}
	h := ask(s)
	if len(h.Devices) != 5 || h.Devices[0].Index != 1 || h.Devices[0].UUID != "GPU-2" || len(h.Links) != 5 {
		t.Errorf("%+v", h.Devices)
	}
	want := []string{
		"GPU 0 0000:17:00.0 is left out: it has fallen off the bus; the host must be restarted",
		"GPU 6 is left out: it must be reset: nvidia-smi -r",
	}
	if !reflect.DeepEqual(h.Warnings, want) {
		t.Errorf("%q, want %q", h.Warnings, want)
	}
}

func TestDevicesAreSortedByTheirAddresses(t *testing.T) {
	s := dgx()
	for i := range s.Devices {
		device(s, i).GetPciInfoFunc = func() (nvml.PciInfo, nvml.Return) {
			return nvml.PciInfo{Bus: uint32(9 - i)}, nvml.SUCCESS
		}
	}
	device(s, 0).GetTopologyCommonAncestorFunc = func(nvml.Device) (nvml.GpuTopologyLevel, nvml.Return) {
		return nvml.TOPOLOGY_INTERNAL, nvml.SUCCESS
	}
	h := ask(s)
	if d := h.Devices[0]; d.UUID != "GPU-7" || d.Index != 0 || h.Devices[7].PCI != "0000:09:00.0" {
		t.Errorf("%+v", h.Devices)
	}
	if h.Links[7][3].Level != topo.Board || h.Links[3][7].Level == topo.Board {
		t.Errorf("links are not of the devices: %+v", h.Links)
	}
}

// Nothing is asked after a failed Init: the mock panics, and the real library
// ends the process.
func TestALibraryThatFailsIsAskedNothing(t *testing.T) {
	for ret, want := range map[nvml.Return]string{
		nvml.ERROR_LIBRARY_NOT_FOUND:       "libnvidia-ml.so.1 cannot be loaded",
		nvml.ERROR_DRIVER_NOT_LOADED:       "driver is not loaded",
		nvml.ERROR_NO_PERMISSION:           "no permission",
		nvml.ERROR_LIB_RM_VERSION_MISMATCH: "different versions",
		nvml.ERROR_UNKNOWN:                 "(999)",
	} {
		h := ask(&mock.Interface{InitFunc: func() nvml.Return { return ret }})
		if !strings.Contains(h.Trouble, want) || len(h.Devices) != 0 {
			t.Errorf("%v: %+v, want %q", ret, h, want)
		}
	}
	s := dgx()
	s.DeviceGetCountFunc = func() (int, nvml.Return) { return 0, nvml.ERROR_UNKNOWN }
	if h := ask(s); h.Trouble == "" {
		t.Errorf("%+v without a count", h)
	}
	s.DeviceGetCountFunc = func() (int, nvml.Return) { return 0, nvml.SUCCESS }
	if h := ask(s); h.Trouble != "" || len(h.Devices) != 0 {
		t.Errorf("%+v of a host without GPUs", h)
	}
}

func TestListFoldsRuns(t *testing.T) {
	for want, set := range map[string][]uint{
		"": nil, "0": {1}, "0-2,5": {0b100111}, "63-64,127": {1 << 63, 1<<63 | 1}, "128": {0, 0, 1, 0, 0, 0},
	} {
		if got := list(set); got != want {
			t.Errorf("%x: %q, want %q", set, got, want)
		}
	}
}

// program runs the program as a process of its own, which finds NVIDIA's library
// in dir, or there not.
func program(t *testing.T, dir string) (stdout, stderr string, status int) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Args[0] = "gompi-topo"
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+dir)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// A library of a driver so old that it has only the functions of every NVML. A call of any other
// would end the process with status 127.
func TestAnOldLibraryIsAskedWhatItHas(t *testing.T) {
	cc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("needs gcc to make a library")
	}
	dir := t.TempDir()
	if out, err := exec.Command(cc, "-shared", "-fPIC", "-o", dir+"/libnvidia-ml.so.1",
		"testdata/old.c").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, errs, status := program(t, dir)
	h, err := topo.Parse([]byte(out))
	if err != nil || status != 0 {
		t.Fatalf("status %d, %v: %s%s", status, err, out, errs)
	}
	if len(h.Devices) != 2 || h.Devices[1].UUID != "GPU-old-1" || h.Devices[1].Name != "" || h.Driver != "" {
		t.Errorf("%s", out)
	}
	// The same library, of another version than the driver.
	t.Setenv("OLD_INIT", "18")
	out, errs, status = program(t, dir)
	if status != 0 || !strings.Contains(out, `"trouble":"NVML: library and kernel driver have different versions`) {
		t.Errorf("status %d: %s%s", status, out, errs)
	}
}

func TestTheProgram(t *testing.T) {
	h := ask(dgx())
	for _, tt := range []struct {
		args             []string
		host             *topo.Host
		status           int
		stdout, contains string
	}{
		{nil, h, 0, `"uuid":"GPU-7"`, ""},
		{nil, &topo.Host{Trouble: "none"}, 0, `"trouble":"none"`, ""},
		{[]string{"-x"}, h, 2, "", "usage: "},
		{[]string{"x"}, h, 2, "", `argument "x"`},
		{[]string{"-h"}, h, 0, "usage: ", ""},
	} {
		var out, errs bytes.Buffer
		status := run(tt.args, func() *topo.Host { return tt.host }, &out, &errs)
		if status != tt.status || !strings.Contains(out.String(), tt.stdout) ||
			!strings.Contains(errs.String(), tt.contains) {
			t.Errorf("%v: status %d, %q, %q; want %d, %q, %q", tt.args, status, &out, &errs, tt.status, tt.stdout,
				tt.contains)
		}
	}
}
