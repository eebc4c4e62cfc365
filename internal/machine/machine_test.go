package machine

import "testing"

func TestFewProcessorsHaveSettings(t *testing.T) {
	for _, test := range []struct {
		id   id
		want string
	}{
		{id{"GenuineIntel", 6, 143, 2048, true}, tunings[0].tuning},
		{id{"GenuineIntel", 6, 85, 1024, false}, ""}, // not measured
		{id{"AuthenticAMD", 25, 17, 1024, true}, ""},
		{id{}, ""},
	} {
		if got := test.id.tuning(); got != test.want {
			t.Errorf("%v: %q, want %q", test.id, got, test.want)
		}
	}
}
