package ucx

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"gompi/internal/rdma"
)

const sysfs = "/sys"

var errDevice = errors.New("no InfiniBand or RoCE device has an active port")

// nearest names the devices for UCX to use, as UCX_NET_DEVICES does: those nearest to the
// processors of this process. UCX chooses among them by what the peer has. It is "" where the
// environment names devices, which UCX reads itself.
func nearest(sys string, cpus []int) (string, error) {
	near := rdma.Nearest(sys, rdma.Ports(sys), cpus)
	if len(near) == 0 {
		return "", errDevice
	}
	if os.Getenv("UCX_NET_DEVICES") != "" {
		return "", nil
	}
	var names []string
	for _, p := range near {
		names = append(names, p.Name())
	}
	return strings.Join(names, ","), nil
}

// explain adds to UCX's error a likely cause: registered memory is locked, and a process may lock
// at most limit bytes. A negative limit is none.
func explain(err error, limit int64) error {
	if limit < 0 {
		return err
	}
	return fmt.Errorf("%w; locked memory is limited to %d KiB, and RDMA takes more: ulimit -l unlimited", err, limit>>10)
}
