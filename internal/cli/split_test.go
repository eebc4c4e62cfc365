package cli

import (
	"slices"
	"testing"
)

func TestCommandsAreSplitAsAShellDoes(t *testing.T) {
	tests := []struct {
		in   string
		want []string
	}{
		{"ssh -p 2222  -i key", []string{"ssh", "-p", "2222", "-i", "key"}},
		{`ssh -o "ProxyCommand nc %h %p" -i 'my key'`, []string{"ssh", "-o", "ProxyCommand nc %h %p", "-i", "my key"}},
		{`a\ b "c\"d\e" '' 'x\y'`, []string{"a b", `c"d\e`, "", `x\y`}},
		{`a'b'"c"`, []string{"abc"}},
	}
	for _, tt := range tests {
		got, err := SplitCommand(tt.in)
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, %v; want %q", tt.in, got, err, tt.want)
		}
	}
	for _, in := range []string{"", "  ", "ssh 'a", `ssh "a`, `ssh a\`} {
		if got, err := SplitCommand(in); err == nil {
			t.Errorf("%q: %q, want an error", in, got)
		}
	}
}
