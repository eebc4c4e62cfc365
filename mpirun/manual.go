package mpirun

import (
	"os"
	"os/exec"
	"os/signal"
	"strings"

	"gompi/mpirun/internal/manual"
	"gompi/mpirun/internal/stdio"
)

// showPage is gompirun man.
func showPage(name string) error {
	roff, plain, err := manual.Page(name)
	if err != nil {
		return err
	}
	if shown := byMan(roff); !shown {
		_, err = stdio.Stdout.WriteString(plain)
	}
	return err
}

// byMan shows a page by man, which breaks its lines and calls the user's pager, and reports
// whether that is possible. Images of Ubuntu have a man that only reports that it is missing, and
// no nroff.
func byMan(roff string) bool {
	if _, err := exec.LookPath("nroff"); err != nil {
		return false
	}
	signal.Notify(make(chan os.Signal, 1), os.Interrupt) // which ends a search of the pager, not the pager
	cmd := exec.Command("man", "-l", "-")
	cmd.Stdin, cmd.Stdout = strings.NewReader(roff), os.Stdout
	return cmd.Run() == nil
}

// printCompletion is gompirun completion.
func printCompletion(shell string) error {
	text, err := manual.Completion(shell)
	if err == nil {
		_, err = stdio.Stdout.WriteString(text)
	}
	return err
}
