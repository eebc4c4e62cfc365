package proc

import "testing"

func TestNamesOfCores(t *testing.T) {
	for pattern, want := range map[string]string{
		"core": "core", "core.%p": "core.17", "/tmp/%e-%p-%s-%t": "/tmp/a_program_with_-17-11-*",
		"100%%/%E": "100%/!opt!a_program_with_a_name", "x%": "x%", "core.%p.%C": "core.17.*",
	} {
		if got := coreName(pattern, 17, "/opt/a_program_with_a_name", 11); got != want {
			t.Errorf("%s: %s, want %s", pattern, got, want)
		}
	}
}
