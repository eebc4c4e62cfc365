package testbed

import "testing"

func TestPortsAreOneTestsUntilItEnds(t *testing.T) {
	var port int
	t.Run("first", func(t *testing.T) {
		port = FreePorts(t, 1)[0]
		if claim(t, port) {
			t.Errorf("port %d was given to two", port)
		}
	})
	if !claim(t, port) {
		t.Errorf("port %d is not free after its test", port)
	}
}
