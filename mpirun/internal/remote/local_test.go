package remote

import "testing"

func TestLocalNamesAreThoseOfThisMachine(t *testing.T) {
	for name, want := range map[string]bool{
		"localhost": true, "LocalHost": true, "127.0.0.1": true, "127.9.8.7": true, "::1": true,
		"::ffff:127.0.0.1": true,
		"192.0.2.1":        false, "node99": false, "127.0.0.1.example": false, "": false,
	} {
		if got := IsLocal(name); got != want {
			t.Errorf("IsLocal(%q) = %v, want %v", name, got, want)
		}
	}
}
