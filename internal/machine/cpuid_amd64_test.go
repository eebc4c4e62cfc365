package machine

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestTheProcessorIsTheKernels(t *testing.T) {
	data, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		t.Skip(err)
	}
	output := map[string]string{}
	for line := range strings.Lines(string(data)) {
		if name, value, ok := strings.Cut(line, ":"); ok && output[strings.TrimSpace(name)] == "" {
			output[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	i := identity()
	if i.vendor != output["vendor_id"] || fmt.Sprint(i.family) != output["cpu family"] ||
		fmt.Sprint(i.model) != output["model"] {
		t.Errorf("%+v, want %s %s/%s", i, output["vendor_id"], output["cpu family"], output["model"])
	}
	if i.virtual != strings.Contains(output["flags"]+" ", " hypervisor ") {
		t.Errorf("%+v, and the flags are %s", i, output["flags"])
	}
}

func TestFamiliesAndModelsAreDecoded(t *testing.T) {
	for _, test := range []struct {
		a             uint32
		family, model int
	}{{0x00a00f11, 25, 1}, {0x000806f8, 6, 143}, {0x00000f29, 15, 2}, {0x00000543, 5, 4}} {
		if family, model := familyAndModel(test.a); family != test.family || model != test.model {
			t.Errorf("%#x: %d/%d, want %d/%d", test.a, family, model, test.family, test.model)
		}
	}
}
