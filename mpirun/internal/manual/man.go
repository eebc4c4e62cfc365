package main

import (
	"cmp"
	"fmt"
	"strings"

	"gompi/internal/cli"
)

// page returns the manual page of a command, headed by its name and its purpose.
func page(h *cli.Help, name, purpose, of string) string {
	var b strings.Builder
	b.WriteString(head(name, 1, purpose, of))
	verbatim(&b, "SYNOPSIS", h.Synopsis)
	b.WriteString(".SH DESCRIPTION\n")
	paragraphs(&b, h.About)
	for i, f := range h.Flags {
		if i == 0 || f.Group != h.Flags[i-1].Group {
			fmt.Fprintf(&b, ".SH %s\n", strings.ToUpper(roff(cmp.Or(f.Group, "options"))))
		}
		fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(f.Head), roff(f.Text))
	}
	if h.Status != "" {
		fmt.Fprintf(&b, ".SH EXIT STATUS\n%s\n", roff(strings.ReplaceAll(h.Status, "\n", " ")))
	}
	if len(h.Examples) > 0 {
		verbatim(&b, "EXAMPLES", h.Examples)
	}
	return b.String()
}

// paragraphs writes paragraphs, whose lines the reader's screen breaks.
func paragraphs(b *strings.Builder, text string) {
	for p := range strings.SplitSeq(text, "\n\n") {
		fmt.Fprintf(b, ".PP\n%s\n", roff(strings.ReplaceAll(p, "\n", " ")))
	}
}

// cutUsage cuts a text of another program's -h into the command lines at its beginning, its
// first paragraph, and its lists, which stay as they are.
func cutUsage(text string) (synopsis []string, about string, lists []string) {
	usage, text, _ := strings.Cut(strings.TrimSuffix(text, "\n"), "\n\n")
	for line := range strings.Lines(strings.TrimPrefix(usage, "usage:")) {
		synopsis = append(synopsis, strings.TrimSpace(line))
	}
	about, text, _ = strings.Cut(text, "\n\n")
	return synopsis, about, strings.Split(text, "\n")
}

// head returns the beginning of the page of a name in a section of the manual.
func head(name string, section int, purpose, of string) string {
	return fmt.Sprintf(".TH %s %d \"\" \"%s\"\n.SH NAME\n%s \\- %s\n", roff(strings.ToUpper(name)), section, of,
		roff(name), purpose)
}

func verbatim(b *strings.Builder, title string, lines []string) {
	fmt.Fprintf(b, ".SH %s\n", title)
	unfilled(b, lines)
}

// unfilled writes lines that stay as they are.
func unfilled(b *strings.Builder, lines []string) {
	b.WriteString(".nf\n")
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
