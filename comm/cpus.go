package comm

import (
	"math/bits"
	"os"
	"strconv"
	"strings"
)

// A cpuset is a set of processors, one bit each.
type cpuset []byte

func (s cpuset) count() int {
	n := 0
	for _, b := range s {
		n += bits.OnesCount8(b)
	}
	return n
}

func (s cpuset) or(t cpuset) cpuset {
	u := make(cpuset, max(len(s), len(t)))
	copy(u, s)
	for i, b := range t {
		u[i] |= b
	}
	return u
}

// quota returns how many processors' time the control group of this process
// may use, rounded up, 0 if it is not limited.
func quota() int {
	if b, err := os.ReadFile("/sys/fs/cgroup/cpu.max"); err == nil {
		if f := strings.Fields(string(b)); len(f) == 2 {
			return share(f[0], f[1])
		}
	}
	limit, err := os.ReadFile("/sys/fs/cgroup/cpu/cpu.cfs_quota_us")
	period, err2 := os.ReadFile("/sys/fs/cgroup/cpu/cpu.cfs_period_us")
	if err != nil || err2 != nil {
		return 0
	}
	return share(strings.TrimSpace(string(limit)), strings.TrimSpace(string(period)))
}

func share(limit, period string) int {
	l, err := strconv.Atoi(limit)
	p, err2 := strconv.Atoi(period)
	if err != nil || err2 != nil || l <= 0 || p <= 0 {
		return 0
	}
	return (l + p - 1) / p
}
