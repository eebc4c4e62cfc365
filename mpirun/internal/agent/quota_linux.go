package agent

import (
	"math"
	"os"
	"path"
	"strconv"
	"strings"
)

// quota returns how many processors' worth of time the control groups that
// this process is in leave it, rounded up; 0: all. root is / but in tests.
func quota(root string) int {
	least := math.Inf(1)
	for _, g := range cgroups(root) {
		// A limit of any group above holds, too.
		for dir := g.dir; ; dir = path.Dir(dir) {
			if cpus, ok := limit(path.Join(root, g.mount, dir), g.v2); ok {
				least = min(least, cpus)
			}
			if dir == "/" || dir == "." {
				break
			}
		}
	}
	if math.IsInf(least, 1) {
		return 0
	}
	return int(math.Ceil(min(least, 1<<15)))
}

// limit returns the processors' worth of time that one group allows.
func limit(dir string, v2 bool) (float64, bool) {
	file, period := "cpu.cfs_quota_us", "cpu.cfs_period_us"
	if v2 {
		file = "cpu.max"
	}
	data, err := os.ReadFile(path.Join(dir, file))
	if err != nil {
		return 0, false
	}
	words := strings.Fields(string(data)) // v2: "150000 100000", or "max 100000"
	if !v2 {
		data, err := os.ReadFile(path.Join(dir, period))
		if err != nil {
			return 0, false
		}
		words = append(words, strings.Fields(string(data))...)
	}
	if len(words) != 2 {
		return 0, false
	}
	time, err1 := strconv.ParseFloat(words[0], 64)
	of, err2 := strconv.ParseFloat(words[1], 64)
	if err1 != nil || err2 != nil || !(time > 0) || !(of > 0) { // -1 is no limit
		return 0, false
	}
	return time / of, true
}
