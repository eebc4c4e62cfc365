package remote

import (
	"path/filepath"
	"slices"
	"strconv"

	"gompi/hostfile"
	"gompi/internal/cli"
)

// login returns the login command for h, without a remote command: its last word is the host.
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

// ByHand returns the shell command for a user to try a login to h.
func (s *SSH) ByHand(h hostfile.Host) string {
	return cli.Line(append(login(s.command, h), "true")...)
}

// Terminal returns the command that runs a script of one line at the end of login, on a terminal;
// on this machine if login is empty.
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
