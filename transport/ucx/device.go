package ucx

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"gompi/internal/machine"
)

const (
	sysfs      = "/sys"
	netDevices = "UCX_NET_DEVICES"
)

var errDevice = errors.New("no InfiniBand or RoCE device has an active port")

// nearest returns the ports for UCX to use: the nearest to the processors of this process, or the
// ports named in UCX_NET_DEVICES. nearest fails if no port is active, and returns none if that
// variable names an unknown port, which UCX may know.
func nearest(sys string, cpus []int) ([]machine.Port, error) {
	ports := machine.NearestPorts(sys, machine.Ports(sys), cpus)
	named := os.Getenv(netDevices)
	switch {
	case len(ports) == 0:
		return nil, errDevice
	case named == "" || named == "all":
		return ports, nil
	}
	var chosen []machine.Port
	for _, p := range machine.Ports(sys) {
		if p.Active() && slices.ContainsFunc(strings.Split(named, ","),
			func(s string) bool { return strings.TrimSpace(s) == p.Name() }) {
			chosen = append(chosen, p)
		}
	}
	return chosen, nil
}

// devices names ports in the syntax of UCX_NET_DEVICES, "" if the variable is set: UCX itself reads
// the variable. Of the named ports, UCX chooses by the peer's.
func devices(ports []machine.Port) string {
	if os.Getenv(netDevices) != "" {
		return ""
	}
	var names []string
	for _, p := range ports {
		names = append(names, p.Name())
	}
	return strings.Join(names, ",")
}

// fabrics returns the networks of ports, each once.
func fabrics(ports []machine.Port) (names []string) {
	for _, p := range ports {
		if f := p.Fabric(); !slices.Contains(names, f) {
			names = append(names, f)
		}
	}
	return names
}

// explain adds to UCX's error a likely cause: registered memory is locked, and a process may lock
// at most limit bytes. A negative limit means none.
func explain(err error, limit int64) error {
	if limit < 0 {
		return err
	}
	return fmt.Errorf("%w; locked memory is limited to %d KiB, and RDMA takes more: ulimit -l unlimited",
		err, limit>>10)
}
