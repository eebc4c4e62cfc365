package plan

import "testing"

func TestPatternsAreChecked(t *testing.T) {
	for pattern, ok := range map[string]bool{"": true, "a%r": true, "%%%h%p%g%t%l": true, "%": false, "%d": false,
		"a%": false} {
		if err := CheckPattern(pattern); (err == nil) != ok {
			t.Errorf("%q: %v", pattern, err)
		}
	}
}
