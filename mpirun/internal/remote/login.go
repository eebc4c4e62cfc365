package remote

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"gompi/hostfile"
	"gompi/internal/cli"
)

// login returns the command that logs in to h, without what is to run there:
// its last word is the host.
func login(command []string, h hostfile.Host) []string {
	argv := slices.Clone(command)
	if h.Port != 0 {
		argv = append(argv, "-p", strconv.Itoa(h.Port))
	}
	if h.User != "" {
		argv = append(argv, "-l", h.User)
	}
	return append(argv, h.Name)
}

// ByHand returns the shell's command by which a user may try to log in to h.
func (s *SSH) ByHand(h hostfile.Host) string {
	words := append(login(s.command, h), "true")
	for i, w := range words {
		if strings.ContainsFunc(w, needsQuotes) {
			words[i] = cli.Quote(w)
		}
	}
	return strings.Join(words, " ")
}

func needsQuotes(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_./:@%=+,", r)
}

// Terminal returns the command that runs a script of one line where login leads
// to, on a terminal; here if login is empty.
func Terminal(login []string, script string) []string {
	if len(login) == 0 {
		return []string{"sh", "-c", script}
	}
	argv, host := slices.Clone(login[:len(login)-1]), login[len(login)-1]
	if filepath.Base(argv[0]) == "ssh" {
		argv = append(argv, "-t")
	}
	return append(argv, host, "sh -c "+cli.Quote(script))
}
