package hostfile

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// largestFile bounds the input of Parse, in bytes: 256 for each of MaxHosts.
const largestFile = 256 * MaxHosts

// Parse reads a hostfile. name stands for it in errors, which are of type *Error unless reading
// itself fails. A list without any host or exclusion is an error. Time and memory are linear in
// the number of hosts, at most MaxHosts.
func Parse(name string, r io.Reader) (List, error) {
	data, err := io.ReadAll(io.LimitReader(r, largestFile+1))
	if err != nil {
		return List{}, fmt.Errorf("%s: %w", name, err)
	}
	if len(data) > largestFile {
		return List{}, &Error{File: name, Msg: fmt.Sprintf("more than %d bytes: want a list of hosts", largestFile)}
	}
	text := string(data)
	if strings.HasPrefix(text, "\xff\xfe") || strings.HasPrefix(text, "\xfe\xff") {
		return List{}, &Error{File: name, Msg: "the file is in UTF-16: want UTF-8"}
	}
	if err := CheckText(data); err != nil {
		return List{}, &Error{File: name, Msg: err.Error() + ": want a list of hosts"}
	}
	p := newParser(name)
	var comment blockComment
	for i, raw := range strings.Split(strings.TrimPrefix(text, "\ufeff"), "\n") {
		p.line, p.text = i+1, raw
		if err := p.items(comment.strip(raw, p.line, raw)); err != nil {
			return List{}, err
		}
	}
	if comment.open {
		return List{}, &Error{name, comment.line, `a comment begins with "/*" and never ends: want "*/"`, comment.text}
	}
	return p.finish()
}

// ParseList reads the hosts of a command line argument or environment variable, separated by
// commas. name stands for it in errors: "-H". A host without a count is one slot for each
// mention.
func ParseList(name, list string) (List, error) {
	p := newParser(name)
	p.text = list
	if err := p.items(list); err != nil {
		return List{}, err
	}
	p.list.inline = true
	return p.finish()
}

// blockComment remembers an open comment between lines.
type blockComment struct {
	open bool
	line int    // of its beginning
	text string // that line
}

// strip returns s without its comments.
func (c *blockComment) strip(s string, line int, text string) string {
	var kept strings.Builder
	for s != "" {
		if c.open {
			_, after, found := strings.Cut(s, "*/")
			if !found {
				break
			}
			c.open, s = false, after
			kept.WriteByte(' ')
		}
		i := commentStart(s)
		kept.WriteString(s[:i])
		if s = s[i:]; !strings.HasPrefix(s, "/*") {
			break
		}
		c.open, c.line, c.text, s = true, line, text, s[2:]
	}
	return kept.String()
}

// commentStart returns the index of the first comment of s, or len(s).
func commentStart(s string) int {
	at := len(s)
	for _, mark := range []string{"#", "//", "/*"} {
		if i := strings.Index(s, mark); i >= 0 {
			at = min(at, i)
		}
	}
	return at
}

// An entry is a host during the addition of its mentions.
type entry struct {
	Host
	all     bool   // some mention asks for all its cores
	counted int    // mentions with a count
	bare    int    // mentions without
	line    int    // of the last mention
	text    string // that line
}

// A parser builds a List line by line. line and text are its position.
type parser struct {
	file     string
	line     int
	text     string
	entries  []entry
	byPort   map[int]*Index // the same name at two ports is two hosts
	excluded *Index
	list     List
}

func newParser(file string) *parser {
	return &parser{file: file, byPort: make(map[int]*Index), excluded: NewIndex()}
}

func (p *parser) errorf(format string, args ...any) error {
	return &Error{p.file, p.line, fmt.Sprintf(format, args...), p.text}
}

func (p *parser) warnf(format string, args ...any) {
	p.list.Warnings = append(p.list.Warnings, place(p.file, p.line)+fmt.Sprintf(format, args...))
}

// add enters an item into the list.
func (p *parser) add(it *item) error {
	if len(p.entries)+len(p.list.Excluded)+len(it.names) > MaxHosts {
		return p.errorf("more than %d hosts", MaxHosts)
	}
	for _, name := range it.names {
		if it.exclude {
			p.exclude(name)
		} else if err := p.mention(name, it); err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) exclude(name string) {
	if _, known := p.excluded.full[indexKey(name)]; !known {
		p.excluded.Add(name, len(p.list.Excluded))
		p.list.Excluded = append(p.list.Excluded, name)
	}
}

// mention adds a mention of a host to its entry.
func (p *parser) mention(name string, it *item) error {
	known := p.byPort[it.port]
	if known == nil {
		known = NewIndex()
		p.byPort[it.port] = known
	}
	i, ok := known.Find(name)
	if !ok {
		i = len(p.entries)
		p.entries = append(p.entries, entry{Host: Host{Name: name, Port: it.port}})
	}
	known.Add(name, i)
	e := &p.entries[i]
	e.line, e.text = p.line, p.text
	if it.user != "" {
		if e.User != "" && e.User != it.user {
			return p.errorf("user %q for %s, which had user %q before: want one user for each host", it.user,
				name, e.User)
		}
		e.User = it.user
	}
	e.Slots += it.slots
	e.MaxSlots += it.maxSlots
	e.all = e.all || it.all
	if it.counted {
		e.counted++
	} else {
		e.bare++
	}
	if e.Slots+e.bare > MaxSlots || e.MaxSlots > MaxSlots {
		return p.errorf("more than %d slots for %s", MaxSlots, name)
	}
	return nil
}

// finish interprets mentions without a count, removes the excluded hosts, and returns the list.
func (p *parser) finish() (List, error) {
	repeats := slices.ContainsFunc(p.entries, func(e entry) bool { return e.bare > 0 && e.bare+e.counted > 1 })
	for i := range p.entries {
		e := &p.entries[i]
		p.line, p.text = e.line, e.text
		p.setSlots(e, repeats)
		if e.MaxSlots != 0 && e.Slots > e.MaxSlots {
			return List{}, p.errorf("%s has %d slots and max_slots=%d: want max_slots to be %[2]d or more",
				e.Name, e.Slots, e.MaxSlots)
		}
		if _, out := p.excluded.Find(e.Name); !out {
			p.list.Hosts = append(p.list.Hosts, e.Host)
		}
	}
	p.checkExcluded()
	switch {
	case len(p.entries) == 0 && len(p.list.Excluded) == 0:
		return List{}, &Error{File: p.file, Msg: `no host in it: want for example "node01 slots=4"`}
	case len(p.entries) > 0 && len(p.list.Hosts) == 0:
		return List{}, &Error{File: p.file, Msg: "every host in it is excluded with ^: want one that is not"}
	}
	return p.list, nil
}

// checkExcluded warns of exclusions without an effect, unless the list has only exclusions, for
// another list.
func (p *parser) checkExcluded() {
	if len(p.entries) == 0 || len(p.list.Excluded) == 0 {
		return
	}
	hosts := NewIndex()
	for i := range p.entries {
		hosts.Add(p.entries[i].Name, i)
	}
	for _, name := range p.list.Excluded {
		if _, ok := hosts.Find(name); !ok {
			p.list.Warnings = append(p.list.Warnings, place(p.file, 0)+"^"+name+" excludes no host of this list")
		}
	}
}

// setSlots decides e's Slots and Bare. repeats states that some host of the list is named several
// times, not always with a count.
func (p *parser) setSlots(e *entry, repeats bool) {
	switch {
	case e.all:
		e.Slots = 0
	case e.bare == 0:
	case p.list.inline && e.bare+e.counted == 1:
		e.Slots, e.Bare = 1, true
	case p.list.inline || repeats:
		e.Slots += e.bare
	default:
		e.Slots, e.Bare = 0, true
	}
	if e.bare > 0 && e.counted > 0 {
		total := "all its cores"
		if !e.all {
			total = fmt.Sprint(e.Slots)
		}
		p.warnf("%s is named with a count and without: one slot for each mention without, %s in all", e.Name, total)
	}
}
