package env

import (
	"os"
	"strings"
)

// VisibleDevices returns how many of n GPUs the environment lets programs use.
func VisibleDevices(n int) int {
	list, set := os.LookupEnv(CUDADevices)
	if !set {
		return n
	}
	named := 0
	for device := range strings.SplitSeq(list, ",") {
		device = strings.TrimSpace(device)
		if device == "" || device[0] == '-' {
			break // what follows an impossible device is not used either
		}
		named++
	}
	return min(n, named)
}
