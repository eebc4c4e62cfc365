package main

import (
	"fmt"
	"strings"
)

// page returns u as a manual page. name and what make its heading.
func (u *usage) page(name, what, of string) string {
	var b strings.Builder
	b.WriteString(head(name, 1, what, of))
	verbatim(&b, "SYNOPSIS", u.synopsis)
	b.WriteString(".SH DESCRIPTION\n")
	for _, p := range u.intro {
		fmt.Fprintf(&b, ".PP\n%s\n", roff(p))
	}
	for _, s := range u.sections {
		title := s.title
		if title == "" {
			title = "options"
		}
		fmt.Fprintf(&b, ".SH %s\n", strings.ToUpper(roff(title)))
		for _, p := range s.intro {
			fmt.Fprintf(&b, ".PP\n%s\n", roff(p))
		}
		for _, f := range s.flags {
			fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(f.head), roff(f.text))
		}
		if len(s.notes) > 0 {
			fmt.Fprintf(&b, ".PP\n%s\n", roff(strings.Join(s.notes, " ")))
		}
	}
	if u.status != "" {
		fmt.Fprintf(&b, ".SH EXIT STATUS\n%s\n", roff(u.status))
	}
	if len(u.examples) > 0 {
		verbatim(&b, "EXAMPLES", u.examples)
	}
	return b.String()
}

// head returns the beginning of the page of a name in a section of the manual.
func head(name string, section int, what, of string) string {
	return fmt.Sprintf(".TH %s %d \"\" \"%s\"\n.SH NAME\n%s \\- %s\n", roff(strings.ToUpper(name)), section, of, roff(name), what)
}

func verbatim(b *strings.Builder, title string, lines []string) {
	fmt.Fprintf(b, ".SH %s\n.nf\n", title)
	for _, line := range lines {
		fmt.Fprintln(b, roff(line))
	}
	b.WriteString(".fi\n")
}

// A long list may be broken behind its commas.
var escapes = strings.NewReplacer(`\`, `\e`, `-`, `\-`, `, `, `, `, `,`, `,\:`)

// roff escapes text for roff.
func roff(text string) string {
	if text = escapes.Replace(text); strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		return `\&` + text
	}
	return text
}
