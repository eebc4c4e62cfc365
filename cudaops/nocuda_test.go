//go:build !linux || !cgo || gompi_nocuda

package cudaops_test

import (
	"strings"
	"testing"

	"gompi/cudaops"
)

func TestAProgramBuiltWithoutCUDASaysSo(t *testing.T) {
	devices, err := cudaops.Devices()
	if len(devices) > 0 || err == nil || !strings.Contains(err.Error(), "without CUDA") ||
		!strings.Contains(err.Error(), "gompi_nocuda") {
		t.Errorf("Devices returned %d devices and %v, want none and an error about the build", len(devices), err)
	}
}
