// Package pmi is PMI version 1, the protocol between processes of the MPICH family and their
// launcher: lines such as
//
//	cmd=put kvsname=kvs_1 key=card value=10.0.0.1:5000
//
// gompirun's agents are servers, without input or output (server.go); gompi's ranks are clients
// under other launchers (launcher.go).
package pmi

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"gompi/internal/boot/wire"
)

// Bounds that servers agree on, in bytes.
const (
	MaxName  = 256
	MaxKey   = 64
	MaxValue = 1024

	// MaxLine bounds a line: a put of the longest name, key and value, with much to spare for other
	// servers' additions.
	MaxLine = 8 << 10
)

// Variables of a launcher: the rank, the job's size, and how to connect to the launcher.
const (
	EnvFD   = "PMI_FD"
	EnvRank = "PMI_RANK"
	EnvSize = "PMI_SIZE"
	EnvPort = "PMI_PORT"
	EnvID   = "PMI_ID"
)

// An Arg is one key and its value.
type Arg struct{ Key, Value string }

// A Command is one line: a command, and its arguments in any order.
type Command struct {
	Cmd  string
	Args []Arg
}

// New returns a command with keys and values in turn.
func New(cmd string, args ...string) *Command {
	m := &Command{Cmd: cmd}
	for i := 0; i+1 < len(args); i += 2 {
		m.Args = append(m.Args, Arg{args[i], args[i+1]})
	}
	return m
}

// Get returns the value of a key, "" if there is none.
func (m *Command) Get(key string) string {
	for _, a := range m.Args {
		if a.Key == key {
			return a.Value
		}
	}
	return ""
}

// Err returns the error that the other side reports, or nil. A line without a result code means
// success.
func (m *Command) Err() error {
	rc := m.Get("rc")
	if rc == "" || rc == "0" {
		return nil
	}
	if why := m.Get("msg"); why != "" {
		return fmt.Errorf("%s: %s", m.Cmd, why)
	}
	return fmt.Errorf("%s: result code %s", m.Cmd, rc)
}

// unspaced replaces the characters that would end a value or a line.
var unspaced = strings.NewReplacer(" ", "_", "\n", "_")

// Append appends the line. Blanks in a value become underscores. A key with an empty value is left
// out, because new MPICH refuses such a line.
func (m *Command) Append(b []byte) []byte {
	b = append(append(b, "cmd="...), m.Cmd...)
	for _, a := range m.Args {
		if a.Value == "" {
			continue
		}
		b = append(append(b, ' '), a.Key...)
		b = append(append(b, '='), unspaced.Replace(a.Value)...)
	}
	return append(b, '\n')
}

// Parse reads a line, with or without its end. A word without "=" belongs to the value before it:
// some launchers put whole sentences there.
func Parse(line []byte) (*Command, error) {
	m := &Command{}
	for _, word := range strings.Fields(string(line)) {
		key, value, ok := strings.Cut(word, "=")
		switch {
		case m.Cmd == "":
			if !ok || key != "cmd" || value == "" {
				return nil, fmt.Errorf("PMI: line %.80q: want cmd=NAME first", line)
			}
			m.Cmd = value
		case ok && key != "":
			m.Args = append(m.Args, Arg{key, value})
		case len(m.Args) > 0:
			m.Args[len(m.Args)-1].Value += " " + word
		default:
			return nil, fmt.Errorf("PMI: line %.80q: want key=value after the command", line)
		}
	}
	if m.Cmd == "" {
		return nil, errors.New("PMI: an empty line: want cmd=NAME")
	}
	return m, nil
}

// Lines splits a stream into lines. Its zero value is empty.
type Lines struct{ buf []byte }

// Add adds bytes from the stream.
func (l *Lines) Add(p []byte) { l.buf = append(l.buf, p...) }

// Next returns the next whole line without its end. ok is false if the line is incomplete. The line
// is valid until Add is called.
func (l *Lines) Next() (line []byte, ok bool, err error) {
	line, rest, ok := bytes.Cut(l.buf, []byte{'\n'})
	if len(line) > MaxLine {
		return nil, false, fmt.Errorf("PMI: a line of more than %d bytes: %.40q", MaxLine, line)
	}
	if !ok {
		return nil, false, nil
	}
	l.buf = rest
	return line, true, nil
}

// MappingKey is the key of the placement: which ranks share a node.
const MappingKey = "PMI_process_mapping"

// Mapping returns the value of MappingKey: "(vector,(0,2,4))" is four ranks on each of two nodes,
// counted from node 0. If the value would be too long, Mapping returns "".
func Mapping(placement []wire.Run) string {
	var b strings.Builder
	b.WriteString("(vector")
	for i := 0; i < len(placement); {
		first := placement[i]
		nodes := 1
		for i += 1; i < len(placement); i++ {
			if placement[i] != (wire.Run{Node: first.Node + nodes, Count: first.Count}) {
				break
			}
			nodes++
		}
		fmt.Fprintf(&b, ",(%d,%d,%d)", first.Node, nodes, first.Count)
	}
	b.WriteString(")")
	if b.Len() >= MaxValue {
		return ""
	}
	return b.String()
}
