package cmdline

import (
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"unicode/utf8"

	"gompi/internal/cli"
)

// variable matches a shell's assignment in front of a command.
var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)

// dashes are the characters that word processors substitute for "-".
const dashes = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"

// slip returns an error with the probable intention if the first word of argv is no program.
// alone means that the word is the first on the line.
func slip(argv []string, alone bool) error {
	word := argv[0]
	switch r, n := utf8.DecodeRuneInString(word); {
	case strings.ContainsRune(dashes, r):
		typed := "-" + word[n:]
		return fmt.Errorf("%q begins with a dash that is no \"-\" (%U), as a PDF or a word processor has it: type %s",
			word, r, typed)
	case variable.MatchString(word) && !isProgram(word):
		return fmt.Errorf("%q is no program: to set a variable for the ranks type -x %s in front of it", word, word)
	case alone && len(word) > 2 && !isProgram(word):
		if near := cli.Nearest(word, commandNames()); near != "" {
			return fmt.Errorf("%q: there is no such program here: did you mean gompirun %s?", word, near)
		}
	}
	return nil
}

// isProgram reports whether word is a program on this machine.
func isProgram(word string) bool {
	_, err := exec.LookPath(word)
	return err == nil
}
