package cmdline

import (
	"fmt"
	"os"
	"strings"

	"gompi/hostfile"
	"gompi/internal/cli"
)

// readAppFile reads the file of -app, which replaces the programs on the command line. It parses
// the flags of the first program, and returns the arguments that Parse leaves. rest are the
// arguments left of the command line itself.
func (p *parser) readAppFile(set *cli.Set, rest []string) ([]string, error) {
	file := p.appFile
	if len(rest) > 0 {
		return nil, fmt.Errorf("-app %s and program %q: want one of them", file, rest[0])
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("-app: %w", err)
	}
	if err := hostfile.CheckText(text); err != nil {
		return nil, fmt.Errorf("-app %s: %w: want a line for each program, as in: -np 2 ./prog", file, err)
	}
	args, err := appLine(file, string(text))
	if err != nil {
		return nil, err
	}
	p.appFile = ""
	rest, err = set.Parse(args)
	if err == nil && p.appFile != "" {
		err = fmt.Errorf(`-app %s: "-app %s" is in it: want programs, not another file`, file, p.appFile)
	}
	return rest, err
}

// appLine returns the command line made of a file's lines, each a program as between ":".
func appLine(file, text string) (args []string, err error) {
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		words, err := cli.SplitCommand(line)
		if err != nil {
			return nil, fmt.Errorf("-app: %s:%d: %w", file, n, err)
		}
		if len(args) > 0 {
			args = append(args, ":")
		}
		args = append(args, words...)
	}
	if len(args) == 0 {
		return nil, fmt.Errorf("-app %s: want a line for each program, as in: -np 2 ./prog", file)
	}
	return args, nil
}
