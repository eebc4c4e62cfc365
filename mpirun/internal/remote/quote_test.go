package remote

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
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

func FuzzQuotedWordsPassThroughAShellUnchanged(f *testing.F) {
	for _, s := range []string{"", "plain", "two words", "it's", `"`, `\`, "$HOME `id` $(id)", "-n", "a\nb", "*?[]{}~#!&|;<>", "'''", "äöü"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if strings.ContainsRune(s, 0) || len(s) > 1<<16 {
			t.Skip("no argument can hold it")
		}
		out, err := exec.Command("sh", "-c", "printf %s. "+quote(s)).Output()
		if err != nil || string(out) != s+"." {
			t.Errorf("%q became %q, %v", s, out, err)
		}
		if utf8.ValidString(s) {
			if words, err := SplitCommand("x " + quote(s)); err != nil || !slices.Equal(words, []string{"x", s}) {
				t.Errorf("%q was split to %q, %v", s, words, err)
			}
		}
	})
}
