package ucx

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"gompi/internal/rdma"
)

const (
	sysfs      = "/sys"
	netDevices = "UCX_NET_DEVICES"
)

var errDevice = errors.New("no InfiniBand or RoCE device has an active port")

// nearest returns the ports for UCX to use: those nearest to the processors of this process, or
// those that UCX_NET_DEVICES names.
func nearest(sys string, cpus []int) ([]rdma.Port, error) {
	ports := rdma.Ports(sys)
	if names := os.Getenv(netDevices); names != "" && names != "all" {
		named := strings.Split(names, ",")
		ports = slices.DeleteFunc(ports, func(p rdma.Port) bool { return !slices.Contains(named, p.Name()) })
	}
	if near := rdma.Nearest(sys, ports, cpus); len(near) > 0 {
		return near, nil
	}
	if named := os.Getenv(netDevices); named != "" {
		return nil, fmt.Errorf("%w (%s=%s)", errDevice, netDevices, named)
	}
	return nil, errDevice
}

// devices names ports as UCX_NET_DEVICES does, "" where that is set: UCX reads it itself. Of what
// is named, UCX chooses by what the peer has.
func devices(ports []rdma.Port) string {
	if os.Getenv(netDevices) != "" {
		return ""
	}
	var names []string
	for _, p := range ports {
		names = append(names, p.Name())
	}
	return strings.Join(names, ",")
}

// fabrics returns what networks ports are on, each once.
func fabrics(ports []rdma.Port) (names []string) {
	for _, p := range ports {
		if f := p.Fabric(); !slices.Contains(names, f) {
			names = append(names, f)
		}
	}
	return names
}

// explain adds to UCX's error a likely cause: registered memory is locked, and a process may lock
// at most limit bytes. A negative limit is none.
func explain(err error, limit int64) error {
	if limit < 0 {
		return err
	}
	return fmt.Errorf("%w; locked memory is limited to %d KiB, and RDMA takes more: ulimit -l unlimited", err, limit>>10)
}
