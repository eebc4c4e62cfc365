package main

import (
	"fmt"
	"os/exec"
	"regexp"
	"strings"
)

// command matches the beginning of a line of gompi-bench -h.
var command = regexp.MustCompile(`(?m)^  ([a-z]+) `)

// benchPage returns the page of gompi-bench, made of the output of -h and of each command's -h.
func benchPage(program, of string) (string, error) {
	all, err := help(program)
	if err != nil {
		return "", err
	}
	page := &usage{intro: []string{"Measures gompi: its operations, by ranks that gompirun starts, and beside other implementations, which it starts itself."}}
	for _, m := range command.FindAllStringSubmatch(all, -1) {
		text, err := help(program, m[1])
		if err != nil {
			return "", err
		}
		u := parse(text)
		page.synopsis = append(page.synopsis, u.synopsis...)
		s := section{title: m[1], intro: u.intro}
		for _, part := range u.sections {
			s.flags = append(s.flags, part.flags...)
			s.notes = append(s.notes, part.notes...)
		}
		page.sections = append(page.sections, s)
	}
	if len(page.sections) == 0 {
		return "", fmt.Errorf("%s -h names no command:\n%s", program, all)
	}
	return page.page("gompi-bench", "measure gompi, alone and beside others", of), nil
}

// help returns a program's output for the words and -h.
func help(program string, words ...string) (string, error) {
	out, err := exec.Command(program, append(words, "-h")...).Output()
	if err != nil {
		return "", fmt.Errorf("%s %s -h: %w", program, strings.Join(words, " "), err)
	}
	return string(out), nil
}
