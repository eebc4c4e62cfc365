package cli

import (
	"errors"
	"fmt"
	"strings"
)

// SplitCommand splits a command into words at blanks, like a shell: text in single quotes is
// literal; a backslash escapes a quote or a backslash in double quotes, and any character outside
// of quotes. Nothing is expanded.
func SplitCommand(command string) ([]string, error) {
	var words []string
	var word strings.Builder
	begun, escaped := false, false
	open := rune(0) // current quotes
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

// Quote returns word as one word of a POSIX shell's language, which SplitCommand reads, too. csh
// and fish read it the same way, unless it holds a "!" or a backslash.
func Quote(word string) string {
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Line returns words as a command line of a shell, in quotes where that is necessary.
func Line(words ...string) string {
	special := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_./:@%=+,", r)
	}
	line := make([]string, len(words))
	for i, w := range words {
		if line[i] = w; w == "" || strings.ContainsFunc(w, special) {
			line[i] = Quote(w)
		}
	}
	return strings.Join(line, " ")
}
