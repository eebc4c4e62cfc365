// Command manual writes manual pages and the shells' completions of gompirun's command line. Its
// sources are the declared flags of gompirun, the texts of gompi-bench -h and gompicc -help, and
// the doc comment of package hostfile:
//
//	manual FOLDER GOMPI-BENCH
//	manual FOLDER GOMPICC
//
// The second argument is a program to run. With GOMPICC only gompicc's own pages are written,
// because not everybody builds it. make install puts the files where man, bash, zsh and fish
// look.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"gompi/internal/cli"
	"gompi/internal/version"
	"gompi/mpirun/internal/cmdline"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: manual FOLDER GOMPI-BENCH, or GOMPICC")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "manual:", err)
		os.Exit(1)
	}
}

func write(folder, program string) error {
	all, err := filesWith(program)
	if err != nil {
		return err
	}
	for name, text := range all {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// filesWith returns the files made from the texts of a program: gompicc's own, or, with
// gompi-bench, all others.
func filesWith(program string) (map[string]string, error) {
	if filepath.Base(program) == "gompicc" {
		return gompiccPages(program, edition)
	}
	all := files()
	var err1, err2 error
	all["man/man1/gompi-bench.1"], err1 = benchPage(program, edition)
	all["man/man5/gompi-hostfile.5"], err2 = hostfilePage(edition)
	return all, errors.Join(err1, err2)
}

const edition = "gompi " + version.Number

// files returns the files made from gompirun's own texts, by path below PREFIX/share.
func files() map[string]string {
	run := cmdline.Help()
	all := map[string]string{
		"man/man1/gompirun.1": page(run, "gompirun",
			"run a program as the ranks of one job", edition),
		"bash-completion/completions/gompirun":    bash(run, commands),
		"zsh/site-functions/_gompirun":            zsh(run),
		"fish/vendor_completions.d/gompirun.fish": fish(run, commands),
	}
	for _, c := range commands {
		all["man/man1/gompirun-"+c.name+".1"] = page(c.help, "gompirun-"+c.name, c.what, edition)
	}
	return all
}

// A word is a command of gompirun, such as doctor.
type word struct {
	name, what string
	help       *cli.Help
}

var commands = []word{
	{"doctor", "examine hosts and what is between them", helpOf(cmdline.ParseDoctor([]string{"-h"}, nil))},
	{"attach", "run a debugger on a rank of a job", helpOf(cmdline.ParseAttach([]string{"-h"}))},
	{"ps", "list the jobs that run", helpOf(cmdline.ParsePs([]string{"-h"}))},
	{"top", "show what ranks do, again and again", helpOf(cmdline.ParseTop([]string{"-h"}))},
	{"kill", "end a job", helpOf(cmdline.ParseKill([]string{"-h"}))},
}

// helpOf returns the help that the error of a parser of -h has.
func helpOf(_ any, err error) *cli.Help {
	var help *cli.HelpError
	errors.As(err, &help)
	return help.Help
}
