package remote

import "strings"

// quote returns word as one word of a POSIX shell's language. csh and fish read
// it the same way, unless it holds a "!" or a backslash.
func quote(word string) string {
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
