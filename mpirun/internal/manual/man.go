// Package manual has the manual pages of gompirun, and the completions of its command line for
// shells, both made of its flags' declarations.
package manual

import (
	"cmp"
	"fmt"
	"strings"

	"gompi/internal/version"
	"gompi/mpirun/internal/cmdline"
)

// completions are the paths of the completions below PREFIX/share.
var completions = map[string]string{"bash": "bash-completion/completions/gompirun",
	"zsh": "zsh/site-functions/_gompirun", "fish": "fish/vendor_completions.d/gompirun.fish"}

// Files returns the files for man and the shells, by path below PREFIX/share.
func Files() map[string]string {
	all := map[string]string{"man/man1/gompirun.1": page(gompirun())}
	for _, c := range cmdline.Commands {
		c.Name = "gompirun-" + c.Name
		all["man/man1/"+c.Name+".1"] = page(c)
	}
	for shell, path := range completions {
		all[path], _ = Completion(shell)
	}
	return all
}

func gompirun() cmdline.Command {
	return cmdline.Command{Name: "gompirun", What: "run a program as the ranks of one job", Help: cmdline.Help}
}

// Page returns the manual page of one of gompirun's commands, or for "" of gompirun, and the same
// as plain text.
func Page(name string) (roff, plain string, err error) {
	name = strings.TrimPrefix(strings.TrimPrefix(name, "gompirun"), "-")
	if name == "" {
		return page(gompirun()), cmdline.Help().Text(true), nil
	}
	var names []string
	for _, c := range cmdline.Commands {
		if c.Name == name {
			c.Name = "gompirun-" + name
			return page(c), c.Help().Text(true), nil
		}
		names = append(names, c.Name)
	}
	return "", "", fmt.Errorf("%q: want gompirun, or one of its commands: %s", name, strings.Join(names, ", "))
}

// page returns the manual page of a command.
func page(c cmdline.Command) string {
	h := c.Help()
	var b strings.Builder
	b.WriteString(Head(c.Name, 1, c.What))
	Verbatim(&b, "SYNOPSIS", h.Synopsis)
	b.WriteString(".SH DESCRIPTION\n")
	Paragraphs(&b, h.About)
	for i, f := range h.Flags {
		if i == 0 || f.Group != h.Flags[i-1].Group {
			fmt.Fprintf(&b, ".SH %s\n", strings.ToUpper(Escape(cmp.Or(f.Group, "options"))))
		}
		fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", Escape(f.Head), Escape(f.Text))
	}
	if h.Status != "" {
		fmt.Fprintf(&b, ".SH EXIT STATUS\n%s\n", Escape(strings.ReplaceAll(h.Status, "\n", " ")))
	}
	if len(h.Examples) > 0 {
		Verbatim(&b, "EXAMPLES", h.Examples)
	}
	return b.String()
}

// Paragraphs writes paragraphs, whose lines the reader's screen breaks.
func Paragraphs(b *strings.Builder, text string) {
	for p := range strings.SplitSeq(text, "\n\n") {
		fmt.Fprintf(b, ".PP\n%s\n", Escape(strings.ReplaceAll(p, "\n", " ")))
	}
}

// Head returns the beginning of the page of a name in a section of the manual.
func Head(name string, section int, purpose string) string {
	return fmt.Sprintf(".TH %s %d \"\" \"gompi %s\"\n.SH NAME\n%s \\- %s\n", Escape(strings.ToUpper(name)), section, version.Number,
		Escape(name), purpose)
}

// Verbatim writes a section of lines that stay as they are.
func Verbatim(b *strings.Builder, title string, lines []string) {
	fmt.Fprintf(b, ".SH %s\n", title)
	Unfilled(b, lines)
}

// Unfilled writes lines that stay as they are.
func Unfilled(b *strings.Builder, lines []string) {
	b.WriteString(".nf\n")
	for _, line := range lines {
		fmt.Fprintln(b, Escape(line))
	}
	b.WriteString(".fi\n")
}

// A long list may be broken behind its commas.
var escapes = strings.NewReplacer(`\`, `\e`, `-`, `\-`, `, `, `, `, `,`, `,\:`)

// Escape escapes text for roff.
func Escape(text string) string {
	if text = escapes.Replace(text); strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		return `\&` + text
	}
	return text
}
