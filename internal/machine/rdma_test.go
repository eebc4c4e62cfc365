package machine

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// sysfs makes files below a new folder.
func sysfs(t *testing.T, files map[string]string) string {
	t.Helper()
	sys := t.TempDir()
	for name, text := range files {
		file := filepath.Join(sys, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return sys
}

// A host of three memory domains, of which 1 is offline, and four devices.
func host(t *testing.T) string {
	return sysfs(t, map[string]string{
		"devices/system/node/online":             "0,2-3",
		"devices/system/node/node0/cpulist":      "0-3",
		"devices/system/node/node2/cpulist":      "4-7",
		"devices/system/node/node3/cpulist":      "8-9,11",
		"devices/system/node/node0/distance":     "10 21 32",
		"devices/system/node/node2/distance":     "21 10 25",
		"devices/system/node/node3/distance":     "32 25 10",
		"class/infiniband/a/device/numa_node":    "0",
		"class/infiniband/a/ports/1/state":       "4: ACTIVE",
		"class/infiniband/a/ports/1/link_layer":  "InfiniBand",
		"class/infiniband/a/ports/1/rate":        "100 Gb/sec (4X EDR)",
		"class/infiniband/a/ports/1/gids/0":      "0000:0000:0000:0000:0000:0000:0000:0000",
		"class/infiniband/a/ports/1/gids/1":      "fe80:0000:0000:0000:0000:0000:0000:0001",
		"class/infiniband/a/ports/2/state":       "1: DOWN",
		"class/infiniband/b/device/numa_node":    "2",
		"class/infiniband/b/ports/1/state":       "4: ACTIVE",
		"class/infiniband/b/ports/1/link_layer":  "InfiniBand",
		"class/infiniband/b/ports/1/gids/0":      "fe80:0000:0000:0000:0000:0000:0000:0002",
		"class/infiniband/c/device/numa_node":    "2",
		"class/infiniband/c/ports/1/link_layer":  "InfiniBand",
		"class/infiniband/c/ports/1/gids/0":      "fe80:0000:0000:0000:0000:0000:0000:0003",
		"class/infiniband/c/ports/1/state":       "4: ACTIVE",
		"class/infiniband/c/ports/strange/state": "4: ACTIVE",
		"class/infiniband/down/device/numa_node": "3",
		"class/infiniband/down/ports/1/state":    "1: DOWN",
	})
}

func TestPortsAreWhatTheKernelReports(t *testing.T) {
	want := []Port{
		{"a", 1, "ACTIVE", "InfiniBand", "100 Gb/sec (4X EDR)", "fe80:0000:0000:0000:0000:0000:0000:0001", 0},
		{Device: "a", Number: 2, State: "DOWN", Node: 0},
		{Device: "b", Number: 1, State: "ACTIVE", Link: "InfiniBand",
			GID: "fe80:0000:0000:0000:0000:0000:0000:0002", Node: 2},
		{Device: "c", Number: 1, State: "ACTIVE", Link: "InfiniBand",
			GID: "fe80:0000:0000:0000:0000:0000:0000:0003", Node: 2},
		{Device: "down", Number: 1, State: "DOWN", Node: 3},
	}
	if got := Ports(host(t)); !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := Ports(t.TempDir()); got != nil {
		t.Errorf("got %+v where there are no devices", got)
	}
}

func TestNearestPortsAreThoseOfTheNearestDomain(t *testing.T) {
	sys := host(t)
	for _, test := range []struct {
		cpus []int
		want []string
	}{
		{[]int{1}, []string{"a:1"}},
		{[]int{5, 6}, []string{"b:1", "c:1"}},
		{[]int{11}, []string{"b:1", "c:1"}}, // the device beside them is down
		{[]int{0, 4}, []string{"a:1", "b:1", "c:1"}},
		{[]int{40}, []string{"a:1", "b:1", "c:1"}}, // of no domain
		{nil, []string{"a:1", "b:1", "c:1"}},
	} {
		var got []string
		for _, p := range NearestPorts(sys, Ports(sys), test.cpus) {
			got = append(got, p.Name())
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("CPUs %v: got %v, want %v", test.cpus, got, test.want)
		}
	}
}

// Devices of software, and of virtual machines, have no domain.
func TestPortsWithoutADomainAreNear(t *testing.T) {
	sys := sysfs(t, map[string]string{
		"class/infiniband/rxe0/ports/1/state":    "4: ACTIVE",
		"class/infiniband/rxe1/device/numa_node": "-1",
		"class/infiniband/rxe1/ports/1/state":    "4: ACTIVE",
		"devices/system/node/online":             "0",
		"devices/system/node/node0/cpulist":      "0-3",
		"devices/system/node/node0/distance":     "10",
	})
	if got := NearestPorts(sys, Ports(sys), []int{2}); len(got) != 2 {
		t.Errorf("got %+v, want both", got)
	}
}

// A port of another fabric is no rival: only over it some hosts may be reached.
func TestNearestPortsAreThoseOfEachFabric(t *testing.T) {
	ports := []Port{
		{"far", 1, "ACTIVE", "InfiniBand", "", "fe80:0000:0000:0000:0000:0000:0000:0001", 0},
		{"near", 1, "ACTIVE", "InfiniBand", "", "fe80:0000:0000:0000:0000:0000:0000:0002", 2},
		{"other", 1, "ACTIVE", "InfiniBand", "", "fe80:0000:0000:0007:0000:0000:0000:0003", 0},
		{"down", 1, "DOWN", "Ethernet", "", "", 2},
		{"roce", 1, "ACTIVE", "Ethernet", "", "fe80:0000:0000:0000:0000:0000:0000:0004", 3},
	}
	var got []string
	for _, p := range NearestPorts(host(t), ports, []int{5}) {
		got = append(got, p.Name()+" of "+p.Fabric())
	}
	want := []string{"near:1 of InfiniBand fe80:0000:0000:0000", "other:1 of InfiniBand fe80:0000:0000:0007",
		"roce:1 of RoCE"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
