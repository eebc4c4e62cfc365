package contest

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"gompi/internal/machine"
)

// Machine describes this machine in a few words, for reports.
func Machine() string {
	return fmt.Sprintf("%s (%s), %d processors, %s %s, %s", model(), machine.Processor(), runtime.NumCPU(), runtime.GOOS, kernel(), runtime.Version())
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

// Beside returns the path of the named program in the folder of this one, if it
// is there, else the name itself, to be looked up in PATH.
func Beside(name string) string {
	self, err := os.Executable()
	if err != nil {
		return name
	}
	path := filepath.Join(filepath.Dir(self), name)
	if _, err := os.Stat(path); err != nil {
		return name
	}
	return path
}
