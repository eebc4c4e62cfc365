// Package pmi is the language in which processes of the MPICH family speak with
// their launcher, PMI version 1: lines such as
//
//	cmd=put kvsname=kvs_1 key=card value=10.0.0.1:5000
//
// gompirun's agents are servers of it, and gompi's ranks are clients under other
// launchers. It does no input or output.
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

	// MaxLine bounds a line: a put of the largest name, key and value, with much
	// to spare for what others add.
	MaxLine = 8 << 10
)

// Variables by which a launcher announces to a process how to reach it.
const (
	EnvFD   = "PMI_FD"
	EnvRank = "PMI_RANK"
	EnvSize = "PMI_SIZE"
	EnvPort = "PMI_PORT"
	EnvID   = "PMI_ID"
)

// An Arg is one key and its value.
type Arg struct{ Key, Value string }

// A Message is one line: a command, and what comes with it in any order.
type Command struct {
	Cmd  string
	Args []Arg
}

// New returns a message of a command and of keys and values in turn.
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

// Err returns what the other side reports as wrong, nil if nothing. A line
// without a result code means success.
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

// unspaced replaces what would end a value or a line.
var unspaced = strings.NewReplacer(" ", "_", "\n", "_")

// Append appends the line. A value has no blanks: they become underscores. An
// empty value is left out with its key, because new MPICH takes one for a broken
// line.
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

// Parse reads a line, with or without its end. A word without "=" belongs to the
// value before it: some launchers put whole sentences there.
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

// Add adds what was read.
func (l *Lines) Add(p []byte) { l.buf = append(l.buf, p...) }

// Next returns the next whole line without its end; ok is false when more must
// be read first. The line is valid until Add is called.
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

// MappingKey is the key under which a client finds which ranks share a node.
const MappingKey = "PMI_process_mapping"

// Mapping returns the value of MappingKey: "(vector,(0,2,4))" is four ranks on
// each of two nodes, counted from node 0. It is "" if it would be too long.
func Mapping(placement []wire.Run) string {
	var b strings.Builder
	b.WriteString("(vector")
	for i := 0; i < len(placement); {
		first := placement[i]
		nodes := 1
		for i += 1; i < len(placement) && placement[i] == (wire.Run{Node: first.Node + nodes, Count: first.Count}); i++ {
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
