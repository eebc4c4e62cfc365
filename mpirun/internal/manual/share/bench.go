package main

import (
	"fmt"
	"os/exec"
	"regexp"
	"strings"

	"gompi/mpirun/internal/manual"
)

// command matches the beginning of a line of gompi-bench -h.
var command = regexp.MustCompile(`(?m)^  ([a-z]+) `)

// benchPage returns the page of gompi-bench, made of the output of -h and of each command's -h.
func benchPage(program string) (string, error) {
	all, err := help(program)
	if err != nil {
		return "", err
	}
	var lines []string
	var commands strings.Builder
	for _, m := range command.FindAllStringSubmatch(all, -1) {
		text, err := help(program, m[1])
		if err != nil {
			return "", err
		}
		synopsis, about, lists := cutUsage(text)
		lines = append(lines, synopsis...)
		fmt.Fprintf(&commands, ".SH %s\n", strings.ToUpper(m[1]))
		manual.Paragraphs(&commands, about)
		commands.WriteString(".PP\n")
		manual.Unfilled(&commands, lists)
	}
	if len(lines) == 0 {
		return "", fmt.Errorf("%s -h names no command:\n%s", program, all)
	}
	var b strings.Builder
	b.WriteString(manual.Head("gompi-bench", 1, "measure gompi, alone and beside others"))
	manual.Verbatim(&b, "SYNOPSIS", lines)
	b.WriteString(".SH DESCRIPTION\n")
	manual.Paragraphs(&b, "Measures gompi: its operations, by ranks that gompirun starts, and beside other implementations, "+
		"which it starts itself.")
	return b.String() + commands.String(), nil
}

// help returns a program's output for the words and -h.
func help(program string, words ...string) (string, error) {
	out, err := exec.Command(program, append(words, "-h")...).Output()
	if err != nil {
		return "", fmt.Errorf("%s %s -h: %w", program, strings.Join(words, " "), err)
	}
	return string(out), nil
}
