package cli

import (
	"errors"
	"fmt"
	"strings"
)

// SplitCommand splits a command into words at blanks, as a shell would: parts
// in single quotes stand as they are, in double quotes a backslash makes a
// quote or a backslash stand for itself, outside of quotes any character.
// Nothing is expanded.
func SplitCommand(command string) ([]string, error) {
	var words []string
	var word strings.Builder
	begun, escaped := false, false
	open := rune(0) // the quotes that we are in
	for _, c := range command {
		switch {
		case escaped:
			if open == '"' && c != '"' && c != '\\' {
				word.WriteByte('\\')
			}
			word.WriteRune(c)
			escaped = false
		case c == '\\' && open != '\'':
			begun, escaped = true, true
		case c == open:
			open = 0
		case open == 0 && (c == '\'' || c == '"'):
			begun, open = true, c
		case open == 0 && (c == ' ' || c == '\t' || c == '\n'):
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			begun = true
			word.WriteRune(c)
		}
	}
	switch {
	case open != 0:
		return nil, fmt.Errorf("%q: want a closing %c", command, open)
	case escaped:
		return nil, fmt.Errorf("%q: want a character after the backslash", command)
	}
	if begun {
		words = append(words, word.String())
	}
	if len(words) == 0 {
		return nil, errors.New("want a command")
	}
	return words, nil
}

// Quote returns word as one word of a POSIX shell's language, which SplitCommand reads, too.
// csh and fish read it the same way, unless it holds a "!" or a backslash.
func Quote(word string) string {
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
