package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// A Help is the explanation of a command: paragraphs in lines, and the texts of Set.Flag.
type Help struct {
	Synopsis      []string // command lines
	About         string   // paragraphs
	Flags         []*Flag  // those of a group together
	Status        string   // the exit statuses; "" for none
	Examples      []string // command lines
	Before, After string   // stand around the flags in a short form of -h; "" if it has none
}

// A Flag is an entry of -h, of the manual page and of the completions of shells.
type Flag struct {
	Group       string
	Names       []string // the usual one first
	Value       string   // the placeholder of its value; "" if the next word is none
	Head        string   // names and value, as in "-np N, -n N"
	Short, Text string   // Short is "" if the short form of -h lacks the flag
	Words       string   // values that shells complete, separated by spaces
}

// A HelpError is Parse's error for -h, unless a flag of that name is declared.
type HelpError struct {
	*Help
	All bool // for "-h all", "--help all" and the like
}

func (*HelpError) Error() string { return "help is asked for" }

// Flag declares a flag with its usual name first; a name of one letter is the short form. value is
// the placeholder of its value, as N, or [=F] if it is optional. to holds the default and gets the
// value: a *bool, *string, *[]string (of all uses), *[]int or pflag.Value; nil for Parse's own -h.
// "{}" in text becomes the default; the short form of -h has the text before "|", if there is one.
func (s *Set) Flag(names, value string, to any, text string) *Flag {
	f := &Flag{Group: s.Group, Names: strings.Fields(names), Value: value}
	after := strings.TrimSuffix(" "+value, " ")
	if strings.HasPrefix(value, "[") {
		f.Value, after = "", value
	}
	f.Head = "-" + strings.Join(f.Names, after+", -") + after
	text = strings.ReplaceAll(text, "{}", s.bind(to, f.Names))
	short, more, found := strings.Cut(text, "|")
	if f.Text = short + more; found {
		f.Short = short
	}
	at := len(s.Help.Flags)
	for i, other := range s.Help.Flags {
		if other.Group == s.Group {
			at = i + 1
		}
	}
	s.Help.Flags = slices.Insert(s.Help.Flags, at, f)
	return f
}

// bind declares a flag to pflag, and returns its default.
func (s *Set) bind(to any, names []string) string {
	long, letter := names[0], names[len(names)-1]
	if len(long) < len(letter) {
		long, letter = letter, long
	} else if len(letter) > 1 {
		letter = ""
	}
	switch to := to.(type) {
	case nil:
		return ""
	case *bool:
		s.BoolVarP(to, long, letter, *to, "")
	case *string:
		s.StringVarP(to, long, letter, *to, "")
	case *[]string:
		s.StringArrayVarP(to, long, letter, *to, "")
	case *[]int:
		s.IntSliceVarP(to, long, letter, *to, "")
	default:
		s.VarP(to.(pflag.Value), long, letter, "")
	}
	return s.Lookup(long).DefValue
}

// Text returns the output of -h, or of "-h all".
func (h *Help) Text(all bool) string {
	var b strings.Builder
	if !all && h.After != "" {
		fmt.Fprintf(&b, "usage: %s\n\n%s\n\n", h.Synopsis[0], h.Before)
		for _, f := range h.Flags {
			if usual, _, _ := strings.Cut(f.Head, ", "); f.Short != "" {
				twoColumns(&b, usual, f.Short, 24, 80)
			}
		}
		return b.String() + h.After
	}
	fmt.Fprintf(&b, "usage: %s\n\n%s\n", strings.Join(h.Synopsis, "\n       "), h.About)
	for i, f := range h.Flags {
		if first := i == 0 || f.Group != h.Flags[i-1].Group; first {
			b.WriteString(strings.TrimRight("\n"+f.Group, "\n") + "\n")
		}
		twoColumns(&b, f.Head, f.Text, 28, 92)
	}
	if h.Status != "" {
		b.WriteString("\nExit status: " + h.Status + "\n")
	}
	if len(h.Examples) > 0 {
		b.WriteString("\nexamples\n  " + strings.Join(h.Examples, "\n  ") + "\n")
	}
	return b.String()
}

// twoColumns writes a head, and beside it, from a column on, lines of text.
func twoColumns(b *strings.Builder, head, text string, column, width int) {
	line := "  " + head
	if len(line) > column-2 {
		fmt.Fprintln(b, line)
		line = ""
	}
	line = fmt.Sprintf("%-*s", column-1, line)
	for word := range strings.FieldsSeq(text) {
		if len(line)+1+len(word) > width {
			fmt.Fprintln(b, line)
			line = strings.Repeat(" ", column-1)
		}
		line += " " + word
	}
	fmt.Fprintln(b, line)
}
