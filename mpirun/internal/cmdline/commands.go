package cmdline

import (
	"errors"

	"gompi/internal/cli"
)

// A Command is one of gompirun's own, which takes the place of a program at the beginning of the
// line.
type Command struct {
	Name, What string
	Help       func() *cli.Help
}

// Commands are all of them.
var Commands = []Command{
	{"doctor", "examine hosts and what is between them", helpOf(func(args []string) (*Spec, error) {
		return ParseDoctor(args, nil)
	})},
	{"ps", "list the jobs that run", helpOf(ParsePs)},
	{"logs", "print the last output of a job", helpOf(ParseLogs)},
	{"top", "show what ranks do, again and again", helpOf(ParseTop)},
	{"kill", "end a job", helpOf(ParseKill)},
	{"attach", "run a debugger on a rank of a job", helpOf(ParseAttach)},
	{"man", "show a page of the manual", helpOf(ParseMan)},
	{"completion", "print a shell's completion of the command line", helpOf(ParseCompletion)},
}

func commandNames() (names []string) {
	for _, c := range Commands {
		names = append(names, c.Name)
	}
	return names
}

// helpOf returns a function for the help that a parser's error for -h has.
func helpOf[S any](parse func(args []string) (S, error)) func() *cli.Help {
	return func() *cli.Help {
		_, err := parse([]string{"-h"})
		var help *cli.HelpError
		errors.As(err, &help)
		return help.Help
	}
}

var manHelp = cli.Help{
	Synopsis: []string{"gompirun man [PAGE]"},
	About: `Shows the manual page of gompirun, or of one of its commands, as "gompirun man doctor",
without man as plain text.`,
}

var completionHelp = cli.Help{
	Synopsis: []string{"gompirun completion bash|zsh|fish"},
	About:    `Prints the script by which a shell completes the command line.`,
	Examples: []string{
		"source <(gompirun completion bash)    # in ~/.bashrc",
		"source <(gompirun completion zsh)     # in ~/.zshrc, after compinit",
		"gompirun completion fish | source     # in ~/.config/fish/config.fish",
	},
}

// ParseMan reads the command line of gompirun man, without that word. The result is a page, "" for
// gompirun's own.
func ParseMan(args []string) (string, error) {
	set := cli.New("gompirun man")
	set.Help = manHelp
	return operand(set, args, "page")
}

// ParseCompletion reads the command line of gompirun completion, without that word. The result is
// a shell.
func ParseCompletion(args []string) (string, error) {
	set := cli.New("gompirun completion")
	set.Help = completionHelp
	shell, err := operand(set, args, "shell")
	if err == nil && shell == "" {
		err = errors.New("want a shell: bash, zsh or fish")
	}
	return shell, err
}
