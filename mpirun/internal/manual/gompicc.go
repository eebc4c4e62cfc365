package main

import (
	"fmt"
	"os/exec"
)

// gompiccPages makes the pages of gompicc and of its other name from the output of -help. Keys
// are paths below PREFIX/share.
func gompiccPages(program, of string) (map[string]string, error) {
	text, err := exec.Command("sh", program, "-help").Output()
	if err != nil {
		return nil, fmt.Errorf("%s -help: %w", program, err)
	}
	return map[string]string{
		"man/man1/gompicc.1":  parse(string(text)).page("gompicc", "compile and link MPI programs for the standard interface", of),
		"man/man1/gompicxx.1": ".so man1/gompicc.1\n",
	}, nil
}
