package machine

import (
	"math"
	"strconv"
	"strings"
)

// mostCPUs is more processors than any machine has.
const mostCPUs = 1 << 15

// CPUs returns the processors' worth of time that control groups leave this process, 0 without a
// limit. It reads files, in a fraction of a millisecond. root is "/" except in tests.
func CPUs(root string) float64 {
	least := math.Inf(1)
	for g := range ControlGroups(root, "cpu") {
		if cpus, ok := g.cpus(); ok {
			least = min(least, cpus)
		}
	}
	if math.IsInf(least, 1) {
		return 0
	}
	return min(least, mostCPUs)
}

// WholeCPUs is CPUs, rounded up.
func WholeCPUs(root string) int { return int(math.Ceil(CPUs(root))) }

// cpus returns the processors' worth of time that one group allows.
func (g ControlGroup) cpus() (float64, bool) {
	time, period := g.quota()
	t, err1 := strconv.ParseFloat(time, 64)
	p, err2 := strconv.ParseFloat(period, 64)
	if err1 != nil || err2 != nil || !(t > 0) || !(p > 0) { // -1 is no limit
		return 0, false
	}
	return t / p, true
}

// quota returns the time that the group may use in each period, as text.
func (g ControlGroup) quota() (time, period string) {
	if g.V2 { // "150000 100000", or "max 100000"
		time, period, _ = strings.Cut(read(g.Dir, "cpu.max"), " ")
		return time, period
	}
	return read(g.Dir, "cpu.cfs_quota_us"), read(g.Dir, "cpu.cfs_period_us")
}
