package main

import (
	"fmt"
	"os/exec"
	"strings"

	"gompi/mpirun/internal/manual"
)

// gompiccPages makes the pages of gompicc and of its other name from the output of -help. Keys
// are paths below PREFIX/share.
func gompiccPages(program string) (map[string]string, error) {
	text, err := exec.Command("sh", program, "-help").Output()
	if err != nil {
		return nil, fmt.Errorf("%s -help: %w", program, err)
	}
	synopsis, about, lists := cutUsage(string(text))
	var b strings.Builder
	b.WriteString(manual.Head("gompicc", 1, "compile and link MPI programs for the standard interface"))
	manual.Verbatim(&b, "SYNOPSIS", synopsis)
	b.WriteString(".SH DESCRIPTION\n")
	manual.Paragraphs(&b, about)
	manual.Verbatim(&b, "OPTIONS", lists)
	return map[string]string{
		"man/man1/gompicc.1":  b.String(),
		"man/man1/gompicxx.1": ".so man1/gompicc.1\n",
	}, nil
}
