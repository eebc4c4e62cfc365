// Command manual writes gompirun's manual pages, and what shells complete its command line by, out
// of the texts that gompirun -h prints:
//
//	manual FOLDER
//
// make install puts them where man, bash, zsh and fish look.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"gompi/internal/version"
	"gompi/mpirun/internal/cmdline"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: manual FOLDER")
		os.Exit(2)
	}
	for name, text := range files() {
		path := filepath.Join(os.Args[1], name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil {
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "manual:", err)
			os.Exit(1)
		}
	}
}

// files returns what is written, by its path below PREFIX/share.
func files() map[string]string {
	run, doctor, attach := parse(cmdline.UsageAll), parse(cmdline.DoctorUsage), parse(cmdline.AttachUsage)
	page := func(u *usage, name, what string) string { return u.page(name, what, "gompi "+version.Number) }
	return map[string]string{
		"man/man1/gompirun.1":                     page(run, "gompirun", "run a program as the ranks of one job"),
		"man/man1/gompirun-doctor.1":              page(doctor, "gompirun-doctor", "examine hosts and what is between them"),
		"man/man1/gompirun-attach.1":              page(attach, "gompirun-attach", "run a debugger on a rank of a job"),
		"bash-completion/completions/gompirun":    bash(run, doctor, attach),
		"zsh/site-functions/_gompirun":            zsh(run),
		"fish/vendor_completions.d/gompirun.fish": fish(run),
	}
}
