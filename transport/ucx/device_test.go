package ucx

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gompi/internal/poll"
)

func haveDevice() bool {
	_, err := nearest(sysfs, nil)
	return err == nil
}

// UCX gets the devices nearest to the process, unless the environment names some.
func TestNearestDevicesAreForUCX(t *testing.T) {
	sys := t.TempDir()
	if _, err := nearest(sys, nil); !errors.Is(err, errDevice) {
		t.Errorf("without a device: error %v, want %v", err, errDevice)
	}
	for file, text := range map[string]string{
		"class/infiniband/mlx5_0/ports/1/state":      "4: ACTIVE",
		"class/infiniband/mlx5_0/device/numa_node":   "0",
		"class/infiniband/mlx5_0/ports/1/link_layer": "InfiniBand",
		"class/infiniband/mlx5_1/ports/2/link_layer": "InfiniBand",
		"class/infiniband/mlx5_1/ports/2/state":      "4: ACTIVE",
		"class/infiniband/mlx5_1/device/numa_node":   "1",
		"devices/system/node/online":                 "0-1",
		"devices/system/node/node0/cpulist":          "0-7",
		"devices/system/node/node1/cpulist":          "8-15",
		"devices/system/node/node0/distance":         "10 21",
		"devices/system/node/node1/distance":         "21 10",
	} {
		file = filepath.Join(sys, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755),
			os.WriteFile(file, []byte(text+"\n"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		named string
		cpus  []int
		want  string
	}{
		{"", []int{9}, "mlx5_1:2"},
		{"", []int{0, 8}, "mlx5_0:1,mlx5_1:2"},
		{"mlx5_0:1", []int{9}, ""},
	} {
		t.Setenv("UCX_NET_DEVICES", c.named)
		ports, err := nearest(sys, c.cpus)
		if got := devices(ports); got != c.want || err != nil {
			t.Errorf("CPUs %v, UCX_NET_DEVICES=%q: %q, %v, want %q", c.cpus, c.named, got, err, c.want)
		}
		if got := fabrics(ports); !slices.Equal(got, []string{"InfiniBand"}) {
			t.Errorf("CPUs %v, UCX_NET_DEVICES=%q: fabrics %q", c.cpus, c.named, got)
		}
	}
	t.Setenv("UCX_NET_DEVICES", "eth0, mlx5_0:1")
	if ports, err := nearest(sys, []int{9}); err != nil || len(ports) != 1 || ports[0].Device != "mlx5_0" {
		t.Errorf("of two that are named one is there: %+v, %v", ports, err)
	}
	t.Setenv("UCX_NET_DEVICES", "eth0")
	if ports, err := nearest(sys, nil); err != nil || len(ports) > 0 {
		t.Errorf("none that is named is known: %+v, %v; want that UCX decides", ports, err)
	}
}

// Where there is no RDMA, New says so in one line, and UCX says nothing.
func TestWithoutRDMAThereIsNone(t *testing.T) {
	if haveDevice() {
		t.Skip("left out: this machine has RDMA")
	}
	set, err := poll.New(-1)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	for _, tls := range []string{"", "rc"} {
		t.Setenv("UCX_TLS", tls)
		_, err = New(Config{Size: 2}, &rank{}, set)
		if !errors.Is(err, errDevice) || !strings.HasPrefix(err.Error(), "no RDMA: ") {
			t.Errorf("UCX_TLS=%q: error %v, want %v", tls, err, errDevice)
		}
	}
}

func TestAFailureNamesTheLimitOfLockedMemory(t *testing.T) {
	failed := errors.New("Input/output error")
	if err := explain(failed, 64<<10); !errors.Is(err, failed) || !strings.Contains(err.Error(), "64 KiB") {
		t.Errorf("%v: want the failure, and 64 KiB", err)
	}
	if err := explain(failed, -1); err != failed {
		t.Errorf("%v: want the failure alone", err)
	}
}
