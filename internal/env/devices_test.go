package env

import (
	"os"
	"testing"
)

func TestVisibleDevicesAreThoseNamedBeforeAnImpossibleOne(t *testing.T) {
	for list, want := range map[string]int{"": 0, "0": 1, "3,1": 2, "-1": 0, "0,-1,1": 1, "GPU-1a,GPU-2b , 2": 3, "0,1,2,3,4,5": 4} {
		t.Setenv(CUDADevices, list)
		if n := VisibleDevices(4); n != want {
			t.Errorf("%s=%q: %d of 4 devices, want %d", CUDADevices, list, n, want)
		}
	}
	os.Unsetenv(CUDADevices) // until Setenv's cleanup
	if n := VisibleDevices(4); n != 4 {
		t.Errorf("%d of 4 devices without the variable", n)
	}
}
