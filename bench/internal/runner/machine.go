package runner

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"gompi/internal/machine"
)

// Machine describes this machine in a few words, for reports.
func Machine() string {
	return fmt.Sprintf("%s (%s), %d processors, %s %s, %s", model(), machine.Processor(), runtime.NumCPU(),
		runtime.GOOS, kernel(), runtime.Version())
}

func model() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

func kernel() string {
	text, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return strings.TrimSpace(string(text))
}

// IdleLoad is the Load below which a machine counts as idle.
const IdleLoad = 0.2

// loadWindow is the period of Load: 25 ticks of the kernel's count.
const loadWindow = 250 * time.Millisecond

// Load returns the number of processors of the machine in use, by this and other processes and by
// the host of a virtual machine. It takes a quarter of a second, in which the caller is idle. If
// the kernel has no counts, Load returns 0.
func Load() float64 {
	before, begin := busyTicks(), time.Now()
	time.Sleep(loadWindow)
	const perSecond = 100 // USER_HZ, the same on every Linux
	return float64(busyTicks()-before) / perSecond / time.Since(begin).Seconds()
}

// busyTicks returns the busy time of all processors together, in ticks.
func busyTicks() int64 {
	text, _ := os.ReadFile("/proc/stat")
	first, _, _ := strings.Cut(string(text), "\n")
	return parseBusy(first)
}

// parseBusy reads the line "cpu user nice system idle iowait irq softirq steal ...".
func parseBusy(line string) int64 {
	const idle, iowait, guest = 4, 5, 9 // guest time is part of user time
	var sum int64
	for i, word := range strings.Fields(line) {
		n, err := strconv.ParseInt(word, 10, 64)
		if err == nil && i != idle && i != iowait && i < guest {
			sum += n
		}
	}
	return sum
}
