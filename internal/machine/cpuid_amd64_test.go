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
	said := map[string]string{}
	for line := range strings.Lines(string(data)) {
		if name, value, ok := strings.Cut(line, ":"); ok && said[strings.TrimSpace(name)] == "" {
			said[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	i := identity()
	if i.vendor != said["vendor_id"] || fmt.Sprint(i.family) != said["cpu family"] || fmt.Sprint(i.model) != said["model"] {
		t.Errorf("%+v, want %s %s/%s", i, said["vendor_id"], said["cpu family"], said["model"])
	}
	if i.virtual != strings.Contains(said["flags"]+" ", " hypervisor ") {
		t.Errorf("%+v, and the flags are %s", i, said["flags"])
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
