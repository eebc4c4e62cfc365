package topo

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
)

// four is a host of two processors with two GPUs each, the last of which is cut
// into two slices.
func four() *Host {
	h := &Host{Driver: "570.86.15"}
	for i := range 4 {
		h.Devices = append(h.Devices, Device{
			Index: i, PCI: fmt.Sprintf("0000:%d7:00.0", i), UUID: fmt.Sprintf("GPU-%d%da", i, i), Name: "NVIDIA H200",
			NUMA: i / 2, CPUs: []string{"0-3", "4-7"}[i/2], Mode: Shared,
		})
	}
	h.Devices[3].MIG = true
	h.Devices[3].Slices = []Slice{{UUID: "MIG-aa"}, {UUID: "MIG-bb"}}
	for i := range 4 {
		links := make([]Link, 4)
		for j := range links {
			links[j] = Link{Level: System}
			if i/2 == j/2 {
				links[j] = Link{Level: Node, NVLinks: 18}
			}
		}
		h.Links = append(h.Links, links)
	}
	h.Links[3][2], h.Links[2][3] = Link{Level: Switch}, Link{}
	return h
}

func TestAHostReadsBackFromItsJSON(t *testing.T) {
	data, err := json.Marshal(four())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Parse(data); err != nil || !reflect.DeepEqual(got, four()) {
		t.Errorf("%+v, %v; want %+v", got, err, four())
	}
}

func TestParseRefusesWhatNoProgramOfOursWrites(t *testing.T) {
	for _, tt := range []struct{ json, want string }{
		{`no GPUs here`, "as JSON"},
		{`{"devices":[{"index":"x"}]}`, "as JSON"},
		{`{"devices":[{}],"links":[[],[]]}`, "links of 2 GPUs: want them of all 1"},
		{`{"devices":[{},{}],"links":[[{},{}],[{}]]}`, "links to 1 GPUs: want them to all 2"},
		{`{"devices":[{"name":"\u001b[2J"}]}`, "printable"},
		{`{"trouble":"a\nb"}`, "printable"},
		{`{"devices":[` + strings.Repeat(`{},`, MaxDevices) + `{}]}`, "want 256 or less"},
		{strings.Repeat(" ", MaxJSON+1), "bytes about GPUs"},
	} {
		if _, err := Parse([]byte(tt.json)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.60s: %v, want %q in it", tt.json, err, tt.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	data, err := json.Marshal(four())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data, "0,GPU-1,MIG-bb")
	f.Add([]byte(`{"devices":[{"mig":true}],"links":[[{}]]}`), "0,,")
	f.Add([]byte(`{"devices":[{}],"links":[]}`), "0")
	f.Fuzz(func(t *testing.T, data []byte, list string) {
		h, err := Parse(data)
		if err != nil {
			return
		}
		for _, u := range append(h.Units(), h.Named(list)...) {
			h.Label(u)
		}
		for i := range h.Devices {
			h.Ways(i)
		}
		again, err := json.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		if len(again) <= MaxJSON {
			if _, err := Parse(again); err != nil {
				t.Errorf("what was read is written, and then refused: %v", err)
			}
		}
	})
}

func TestUnitsAndWhatAListNames(t *testing.T) {
	lost := four()
	lost.Devices, lost.Links = lost.Devices[1:], nil
	closed := four()
	closed.Devices[1].Mode = Prohibited
	show := func(h *Host, units []Unit) string {
		var words []string
		for _, u := range units {
			words = append(words, h.Label(u)+"="+u.Token)
		}
		return strings.Join(words, " ")
	}
	if got, want := show(four(), four().Units()), "0=0 1=1 2=2 3:0=MIG-aa 3:1=MIG-bb"; got != want {
		t.Errorf("all: %s, want %s", got, want)
	}
	if got, want := show(lost, lost.Units()), "1=GPU-11a 2=GPU-22a 3:0=MIG-aa 3:1=MIG-bb"; got != want {
		t.Errorf("without the first: %s, want %s", got, want)
	}
	if got, want := show(closed, closed.Units()), "0=0 2=2 3:0=MIG-aa 3:1=MIG-bb"; got != want {
		t.Errorf("with one that is prohibited: %s, want %s", got, want)
	}
	for _, tt := range []struct {
		h          *Host
		list, want string
	}{
		{four(), "", ""},
		{four(), "2,0", "2=2 0=0"},
		{four(), " 2 , 0 ", "2=2 0=0"},
		{four(), "1,-1,0", "1=1"},
		{four(), "1,9,0", "1=1"},
		{four(), "GPU-22a,GPU-0,MIG-bb", "2=GPU-22a 0=GPU-0 3:1=MIG-bb"},
		{four(), "0,GPU-x,1", "0=0"},
		{four(), "MIG-other/1/0,1", "MIG-other/1/0=MIG-other/1/0 1=1"},
		{four(), "3", "3=3"},
		{lost, "0,1", ""},
		{lost, "1,2", "1=1 2=2"},
		{&Host{}, "0,1", ""},
	} {
		if got := show(tt.h, tt.h.Named(tt.list)); got != tt.want {
			t.Errorf("%q: %s, want %s", tt.list, got, tt.want)
		}
	}
}

func TestTheKernelReportsWhereGPUsAre(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	root := fstest.MapFS{
		"proc/driver/nvidia/version":                       file("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build\nGCC version: gcc 12.2.0\n"),
		"proc/driver/nvidia/gpus/0000:1B:00.0/information": file("Model: \t\t NVIDIA H200\nIRQ:   \t\t 16\nGPU UUID: \t GPU-1b\nBus Type: \t PCIe\nBus Location: \t 0000:1b:00.0\n"),
		"proc/driver/nvidia/gpus/0000:9a:00.0/information": file("Model: \t\t NVIDIA H200\nGPU UUID: \t GPU-9a\n"),
		"sys/bus/pci/devices/0000:1b:00.0/numa_node":       file("0\n"),
		"sys/bus/pci/devices/0000:9a:00.0/numa_node":       file("1\n"),
		"sys/devices/system/node/node0/cpulist":            file("0-3,8-11\n"),
		"sys/devices/system/node/node1/cpulist":            file("4-7,12-15\n"),
	}
	want := &Host{Driver: "570.86.15", Devices: []Device{
		{Index: 0, PCI: "0000:1b:00.0", UUID: "GPU-1b", Name: "NVIDIA H200", NUMA: 0, CPUs: "0-3,8-11"},
		{Index: 1, PCI: "0000:9a:00.0", UUID: "GPU-9a", Name: "NVIDIA H200", NUMA: 1, CPUs: "4-7,12-15"},
	}}
	if got := FromKernel(root); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	// Two domains, and a device that is in neither.
	root["sys/bus/pci/devices/0000:1b:00.0/numa_node"] = file("-1\n")
	if d := FromKernel(root).Devices[0]; d.NUMA != -1 || d.CPUs != "" {
		t.Errorf("NUMA node %d, CPUs %q of a device without one", d.NUMA, d.CPUs)
	}
	// One domain: there is no other.
	delete(root, "sys/devices/system/node/node1/cpulist")
	if d := FromKernel(root).Devices[0]; d.NUMA != 0 || d.CPUs != "0-3,8-11" {
		t.Errorf("NUMA node %d, CPUs %q where there is one node", d.NUMA, d.CPUs)
	}
	if got := FromKernel(fstest.MapFS{}); !reflect.DeepEqual(got, &Host{}) {
		t.Errorf("%+v without a driver", got)
	}
	// Known values stay.
	h := &Host{Devices: []Device{{PCI: "0000:9a:00.0", CPUs: "1"}}}
	if h.Locate(root); h.Devices[0].CPUs != "1" {
		t.Errorf("CPUs %q, want those that were known", h.Devices[0].CPUs)
	}
}

func TestDriverVersionIsItsNumber(t *testing.T) {
	for says, want := range map[string]string{
		"NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024\nGCC version:  gcc version 12.2.0": "535.183.01",
		"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build":                                          "570.86.15",
		"": "", "no number": "",
	} {
		if got := driverVersion(says); got != want {
			t.Errorf("%q: %q, want %q", says, got, want)
		}
	}
}

func TestWaysAreReportedOnce(t *testing.T) {
	for i, want := range []string{"NV18 SYS", "NV18 SYS", "SYS ?", "SYS PIX"} {
		if got := strings.Join(four().Ways(i), " "); got != want {
			t.Errorf("GPU %d: %q, want %q", i, got, want)
		}
	}
	if got := (&Host{Devices: make([]Device, 2)}).Ways(1); got != nil {
		t.Errorf("%q, where nothing is known", got)
	}
}
