package manual

import (
	_ "embed"
	"fmt"
	"strings"

	"gompi/internal/cli"
	"gompi/mpirun/internal/cmdline"
)

// Completion returns the script by which a shell completes gompirun's command line.
func Completion(shell string) (string, error) {
	switch run := cmdline.Help(); shell {
	case "bash":
		return bash(run), nil
	case "zsh":
		return zsh(run), nil
	case "fish":
		return fish(run), nil
	}
	return "", fmt.Errorf("%q: want bash, zsh or fish", shell)
}

// kindOf describes the value of a flag: words to choose from, or the kind "file", "command" or,
// for anything else, "".
func kindOf(f *cli.Flag) (words, kind string) {
	switch f.Value {
	case "F", "DIR", "DIRS":
		return "", "file"
	case "CMD":
		return "", "command"
	}
	choices := strings.Fields(f.Words)
	for _, w := range strings.Split(f.Value, "|") {
		if strings.Contains(f.Value, "|") && w == strings.ToLower(w) {
			choices = append(choices, w)
		}
	}
	return strings.Join(choices, " "), ""
}

// dashed returns the names of flags with a dash in front.
func dashed(flags ...*cli.Flag) string {
	var all []string
	for _, f := range flags {
		for _, name := range f.Names {
			all = append(all, "-"+name)
		}
	}
	return strings.Join(all, " ")
}

// bash completes flags, their known values, then a program, and files after it. Flags may have
// two dashes in front, and _ for -, as gompirun accepts them.
func bash(run *cli.Help) string {
	var takes, cases, words strings.Builder
	var names []string
	for _, c := range cmdline.Commands {
		names = append(names, c.Name)
		fmt.Fprintf(&words, "\t%s) flags='%s' ;;\n", c.Name, dashed(c.Help().Flags...))
	}
	for _, f := range run.Flags {
		if f.Value == "" {
			continue
		}
		pattern := strings.ReplaceAll(dashed(f), " ", "|")
		if takes.Len() > 0 {
			takes.WriteString("|")
		}
		takes.WriteString(pattern)
		switch words, kind := kindOf(f); {
		case words != "":
			fmt.Fprintf(&cases, "\t%s) COMPREPLY=($(compgen -W '%s' -- \"$cur\")); return ;;\n", pattern, words)
		case kind == "file":
			fmt.Fprintf(&cases, "\t%s) COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n", pattern)
		case kind == "command":
			fmt.Fprintf(&cases, "\t%s) COMPREPLY=($(compgen -c -- \"$cur\")); return ;;\n", pattern)
		default:
			fmt.Fprintf(&cases, "\t%s) return ;;\n", pattern)
		}
	}
	return strings.NewReplacer("@TAKES@", takes.String(), "@CASES@", cases.String(), "@FLAGS@", dashed(run.Flags...),
		"@WORDS@", words.String(), "@COMMANDS@", strings.Join(names, " "), "@PATTERN@",
		strings.Join(names, " | ")).Replace(bashScript)
}

//go:embed complete.bash
var bashScript string

// zsh completes flags, with their descriptions, and otherwise programs and files. The script is a
// function in a folder of fpath, or is sourced.
func zsh(run *cli.Help) string {
	var b strings.Builder
	b.WriteString("#compdef gompirun\n_gompirun() {\nlocal -a flags=(\n")
	for _, f := range run.Flags {
		for _, name := range f.Names {
			fmt.Fprintf(&b, "\t'-%s:%s'\n", name, quoted(f.Text))
		}
	}
	b.WriteString(")\nif [[ $words[CURRENT] == --* ]]; then flags=(-${^flags}); fi\n" +
		"if [[ $words[CURRENT] == -* ]]; then\n\t_describe -o flag flags -M 'm:_=-'\nelse\n\t_alternative 'commands:program:_command_names -e' 'files:file:_files'\nfi\n}\n" +
		"if [[ $funcstack[1] == _gompirun ]]; then _gompirun; else compdef _gompirun gompirun; fi\n")
	return b.String()
}

// fish completes flags, with one dash or two, with their descriptions and known values. Names
// with _ for - are offered once the user has typed _.
func fish(run *cli.Help) string {
	var b strings.Builder
	b.WriteString("# fish completion for gompirun\n" +
		"function __gompirun_underscores\n\tstring match -qr -- ' -[^ ]*_' (commandline -cp)\nend\n")
	for _, c := range cmdline.Commands {
		fmt.Fprintf(&b, "complete -c gompirun -n __fish_use_subcommand -a %s -d '%s'\n", c.Name, quoted(c.What))
	}
	for _, f := range run.Flags {
		words, kind := kindOf(f)
		value := ""
		switch {
		case words != "":
			value = fmt.Sprintf(" -x -a '%s'", words)
		case kind == "file":
			value = " -r -F"
		case kind == "command":
			value = " -x -a '(__fish_complete_command)'"
		case f.Value != "":
			value = " -x"
		}
		for _, name := range f.Names {
			fmt.Fprintf(&b, "complete -c gompirun -o %s -l %[1]s%s -d '%s'\n", name, value, quoted(f.Text))
			if other := strings.ReplaceAll(name, "-", "_"); other != name {
				fmt.Fprintf(&b, "complete -c gompirun -n __gompirun_underscores -o %s -l %[1]s%s\n", other, value)
			}
		}
	}
	return b.String()
}

// quoted returns text for single quotes of a shell, cut short.
func quoted(text string) string {
	text, _, _ = strings.Cut(text, " (")
	return strings.NewReplacer("'", "", ":", " ").Replace(text)
}
