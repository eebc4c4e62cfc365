package cli

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzQuotedWordsPassThroughAShellUnchanged(f *testing.F) {
	for _, s := range []string{"", "plain", "two words", "it's", `"`, `\`, "$HOME `id` $(id)", "-n", "a\nb",
		"*?[]{}~#!&|;<>", "'''", "äöü"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if strings.ContainsRune(s, 0) || len(s) > 1<<16 {
			t.Skip("no argument can hold it")
		}
		out, err := exec.Command("sh", "-c", "printf %s. "+Quote(s)).Output()
		if err != nil || string(out) != s+"." {
			t.Errorf("%q became %q, %v", s, out, err)
		}
		if utf8.ValidString(s) {
			if words, err := SplitCommand("x " + Quote(s)); err != nil || !slices.Equal(words, []string{"x", s}) {
				t.Errorf("%q was split to %q, %v", s, words, err)
			}
		}
	})
}
