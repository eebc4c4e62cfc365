package agent

import (
	"os"

	"gompi/internal/env"
)

// gpus counts the NVIDIA GPUs that programs may use: those that the driver
// lists in dir, or fewer if the environment says so.
func gpus(dir string) int {
	entries, _ := os.ReadDir(dir) // without a driver there is none
	return env.VisibleDevices(len(entries))
}
