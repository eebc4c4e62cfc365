// Package hostfile reads lists of hosts in every dialect that launchers have
// taught their users: Open MPI's and PRRTE's hostfiles, hydra's and Intel's
// machine files, the node files of batch systems, the -H list of a command
// line, and Slurm's bracketed node lists and repetition counts.
//
// One grammar accepts them all:
//
//	file    = { [ item { "," item } ] [ comment ] newline }
//	comment = "#" ... | "//" ... | "/*" ... "*/" (which may span lines)
//	item    = [ "^" ] [ user "@" ] host [ ":" count ] { attribute }
//	host    = name | IPv4 | IPv6 | "[" IPv6 "]" | name with ranges: rack[1-4]n[01-16,20]
//	count   = number | "*" | "auto"                    (* and auto: all its cores)
//	attribute = ("slots" | "slot" | "cpu" | "cpus" | "count" | "np" | "ppn") "=" count
//	          | ("max_slots" | "slots_max" | "max_cpu" | ...) "=" number
//	          | ("user" | "username" | "user_name") "=" name
//	          | "port" "=" number
//	          | number                                 (a count)
//
// A host named several times adds up, whether its lines are adjacent or not.
// Blanks may surround "=", keys may use "-" for "_", and a byte order mark or
// the line ends of another system do no harm. "^host" leaves a host out.
//
// Names are not resolved, and none may begin with "-", so that each may be
// handed to ssh as an argument.
package hostfile

import (
	"fmt"
	"strconv"
	"strings"
)

// Limits of a list. They are far above any real cluster and keep a typing error, n[1-9999999999],
// from taking all memory.
const (
	MaxHosts = 1 << 18 // hosts in one list, after ranges are expanded
	MaxSlots = 1 << 20 // slots of a host
)

// A Host is a host of a list, with all statements of the list about it.
type Host struct {
	Name string // as written, never shortened; an IPv6 address without brackets
	User string // login name; empty if not given
	Port int    // of the ssh server; 0 if not given

	// Slots is the intended number of ranks on the host; 0 stands for the number of its cores.
	Slots int

	// Bare is true if no count was written. Slots is then 0 in a file and 1 on -H, as users of Open
	// MPI expect. A host named twice is never bare: each mention without a count is one slot. Then
	// no other host of a file is bare either, because batch systems write one line per slot.
	Bare bool

	MaxSlots int // most ranks; 0: no limit
}

// String writes h as an item for Parse and ParseList.
func (h Host) String() string {
	var b strings.Builder
	if h.User != "" {
		b.WriteString(h.User + "@")
	}
	b.WriteString(h.Name)
	switch {
	case h.Bare:
	case h.Slots == 0:
		b.WriteString(" slots=*")
	default:
		fmt.Fprintf(&b, " slots=%d", h.Slots)
	}
	if h.MaxSlots != 0 {
		b.WriteString(" max_slots=" + strconv.Itoa(h.MaxSlots))
	}
	if h.Port != 0 {
		b.WriteString(" port=" + strconv.Itoa(h.Port))
	}
	return b.String()
}

// Counted returns the item of ParseList for a host and a count of slots. The last part of a bare
// IPv6 address would be read as the count, and the count as a part of the address.
func Counted(name, count string) string {
	if validIPv6(name) {
		name = "[" + name + "]"
	}
	return name + ":" + count
}

// A List is a parsed list of hosts, in the order of their first mention. No two of its hosts are
// the Same at one port.
type List struct {
	Hosts []Host

	// Excluded holds the names marked with "^". Hosts does not contain them; Filter applies them to
	// another list.
	Excluded []string

	// Warnings are complete lines, each with its file and line, about text that was understood but
	// ignored, or is probably a mistake.
	Warnings []string

	inline bool // from ParseList
}

// String writes l in its original form: a list from Parse as the lines of a file, a list from
// ParseList as one line with commas. The same function reads back the same hosts and exclusions.
func (l List) String() string {
	var items []string
	for _, h := range l.Hosts {
		items = append(items, h.String())
	}
	for _, name := range l.Excluded {
		items = append(items, "^"+name)
	}
	if l.inline {
		return strings.Join(items, ",")
	}
	return strings.Join(items, "\n") + "\n"
}

// An Error is the error of a list, with its place.
type Error struct {
	File string // the name given to Parse or ParseList
	Line int    // from 1; 0 for a list of one line or an error of the whole list
	Msg  string // the error and the valid form
	Text string // the line; empty for an error of the whole list
}

// Error returns "file:line: the error, in "the line"".
func (e *Error) Error() string {
	s := place(e.File, e.Line) + e.Msg
	if e.Text != "" {
		s += ", in " + quoteLine(e.Text)
	}
	return s
}

func place(file string, line int) string {
	if line == 0 {
		return file + ": "
	}
	return file + ":" + strconv.Itoa(line) + ": "
}

// quoteLine quotes a line, cut to a terminal's width.
func quoteLine(s string) string {
	const longest = 80
	s = strings.TrimSpace(s)
	if len(s) > longest {
		s = s[:longest] + "..."
	}
	return strconv.Quote(s)
}
