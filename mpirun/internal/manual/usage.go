package main

import (
	"regexp"
	"strings"
)

// A usage is a text that -h prints.
type usage struct {
	synopsis []string
	intro    []string // paragraphs
	sections []section
	status   string
	examples []string
}

// A section is flags with a title, which is "" if it is the only section. intro are the
// paragraphs above the flags, notes the paragraphs between them.
type section struct {
	title string
	intro []string
	flags []flag
	notes []string
}

// A flag is an entry of a usage: its names without the dash, its value's placeholder, its
// description.
type flag struct {
	head  string // as printed, "-np N, -n N"
	names []string
	value string // "" if the flag takes none
	text  string
}

var (
	entry = regexp.MustCompile(`^ +(--?[a-zA-Z].*?)(?:  +(.*))?$`)
	// Within a head: a name, and the value after it. [=F] belongs to a flag whose value is optional.
	named = regexp.MustCompile(`-([a-zA-Z][-a-zA-Z]*)(?: ([^-, ][^, ]*))?`)
)

// parse reads a usage: the synopsis, paragraphs, and below them sections of flags.
func parse(text string) *usage {
	u := &usage{}
	blocks := strings.Split(strings.TrimSuffix(text, "\n"), "\n\n")
	for line := range strings.Lines(blocks[0]) {
		u.synopsis = append(u.synopsis, strings.TrimSpace(strings.TrimPrefix(line, "usage:")))
	}
	for _, block := range blocks[1:] {
		lines := strings.Split(block, "\n")
		switch {
		case lines[0] == "examples":
			for _, line := range lines[1:] {
				u.examples = append(u.examples, strings.TrimSpace(line))
			}
		case entry.MatchString(lines[0]):
			u.sections = append(u.sections, parseSection("", lines))
		case len(lines) > 1 && entry.MatchString(lines[1]):
			u.sections = append(u.sections, parseSection(lines[0], lines[1:]))
		default:
			text := strings.Join(lines, " ")
			if status, ok := strings.CutPrefix(text, "Exit status: "); ok {
				u.status = status
				continue
			}
			u.intro = append(u.intro, text)
		}
	}
	return u
}

func parseSection(title string, lines []string) section {
	s := section{title: title}
	for _, line := range lines {
		const continued = "        "
		var m []string
		if !strings.HasPrefix(line, continued) {
			m = entry.FindStringSubmatch(line)
		}
		switch {
		case m != nil:
			s.flags = append(s.flags, newFlag(m[1], m[2]))
		case strings.HasPrefix(line, continued) && len(s.flags) > 0:
			f := &s.flags[len(s.flags)-1]
			f.text = strings.TrimSpace(f.text + " " + strings.TrimSpace(line))
		default:
			s.notes = append(s.notes, strings.TrimSpace(line))
		}
	}
	return s
}

func newFlag(head, text string) flag {
	f := flag{head: head, text: text}
	for _, m := range named.FindAllStringSubmatch(head, -1) {
		f.names = append(f.names, m[1])
		if m[2] != "" {
			f.value = m[2]
		}
	}
	return f
}

// flags returns the flags of all sections, with a short description of help.
func (u *usage) flags() (all []flag) {
	for _, s := range u.sections {
		for _, f := range s.flags {
			if !strings.Contains(f.head, "-h all") {
				all = append(all, f)
			} else {
				all = append(all, flag{head: f.head, names: []string{"version", "h"}, text: "print the version, or help"})
			}
		}
	}
	return all
}
