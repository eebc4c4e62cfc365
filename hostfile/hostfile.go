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

// Limits on what one list may describe. They are far above any real cluster
// and keep a slip of the keyboard, n[1-9999999999], from taking all memory.
const (
	MaxHosts = 1 << 18 // hosts in one list, after ranges are expanded
	MaxSlots = 1 << 20 // slots of one host
)

// A Host is one host of a list, with all that the list states of it.
type Host struct {
	Name string // as written, never shortened; an IPv6 address without brackets
	User string // whom to log in as; empty if not given
	Port int    // of the ssh server; 0 if not given

	// Slots is how many ranks the host is meant to take; 0 stands for as many
	// as it has cores.
	Slots int

	// Bare is true when no count was written. Slots is then 0 in a file and 1
	// on -H, as users of Open MPI expect. A host named twice is never bare:
	// each mention without a count is one slot; and neither is any host of a
	// file in which one is named so, because that is how batch systems write
	// one line per slot.
	Bare bool

	MaxSlots int // the most ranks it may ever take; 0: no limit
}

// String writes h as one item that Parse and ParseList read back.
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

// A List is a parsed list of hosts, in the order of their first mention. No
// two of its hosts are the Same at one port.
type List struct {
	Hosts []Host

	// Excluded holds the names marked with "^". They are already gone from
	// Hosts; Filter applies them to another list.
	Excluded []string

	// Warnings are complete lines, each with its file and line: things that
	// were understood but not followed, or that are probably not meant.
	Warnings []string

	inline bool // from ParseList
}

// String writes l in the form that it was read from: what Parse returned as
// the lines of a file, what ParseList returned as one line with commas. The
// same function reads back the same hosts and exclusions.
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

// An Error states what is wrong with a list, and where.
type Error struct {
	File string // the name given to Parse or ParseList
	Line int    // from 1; 0 when the list is one line or the error is of it as a whole
	Msg  string // what is wrong and what was wanted
	Text string // the line; empty when the error is of the list as a whole
}

// Error returns "file:line: what is wrong, in "the line"".
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

// quoteLine quotes a line, cut where a terminal would wrap it anyway.
func quoteLine(s string) string {
	const longest = 80
	s = strings.TrimSpace(s)
	if len(s) > longest {
		s = s[:longest] + "..."
	}
	return strconv.Quote(s)
}
