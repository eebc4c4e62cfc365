// Package table holds the functions of MPI that gompi implements, with their arguments. The C and
// Go code between programs and package mpi is generated from it.
package table

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed functions.txt
var text string

// A Function is a function of MPI.
type Function struct {
	Name    string // without MPI_
	Args    []Arg
	Chapter string
	Face    bool // it is in C alone
	Form    Form
	Base    string // of a collective: the name of its blocking form
}

// A Form is one of the three that a collective has.
type Form int

const (
	NotCollective Form = iota
	Blocking
	Nonblocking
	Persistent
)

// An Arg is an argument of a function.
type Arg struct {
	Name   string
	Kind   string
	In     bool   // the caller gives it
	Out    bool   // the function stores it
	Length string // of an array of handles or statuses
}

// Functions returns all functions, in the order of the table.
func Functions() []Function {
	all, err := parse(text)
	if err != nil {
		panic(err) // a test finds it
	}
	return all
}

func parse(text string) ([]Function, error) {
	p := parser{kinds: map[string]string{}}
	for i, line := range strings.Split(text, "\n") {
		if err := p.line(line); err != nil {
			return nil, fmt.Errorf("functions.txt:%d: %w", i+1, err)
		}
	}
	return p.all, nil
}

type parser struct {
	kinds   map[string]string // by an argument's name
	chapter string
	all     []Function
}

func (p *parser) line(line string) error {
	fields := strings.Fields(line)
	if len(fields) == 0 {
		return nil
	}
	switch first, rest := fields[0], fields[1:]; first {
	case "##":
		p.chapter = strings.Join(rest, " ")
	case "#":
	case "kind":
		for _, name := range rest[1:] {
			p.kinds[name] = rest[0]
		}
	case "face":
		p.all = append(p.all, Function{Name: rest[0], Chapter: p.chapter, Face: true})
	case "coll":
		return p.collective(rest[0], rest[1:])
	default:
		return p.function(first, rest)
	}
	return nil
}

// collective adds the blocking, the nonblocking and the persistent form.
func (p *parser) collective(name string, args []string) error {
	forms := []struct {
		form Form
		name string
		more []string
	}{
		{Blocking, name, nil},
		{Nonblocking, "I" + strings.ToLower(name[:1]) + name[1:], []string{">request"}},
		{Persistent, name + "_init", []string{"info", ">request"}},
	}
	for _, f := range forms {
		if err := p.function(f.name, append(args[:len(args):len(args)], f.more...)); err != nil {
			return err
		}
		last := &p.all[len(p.all)-1]
		last.Form, last.Base = f.form, name
	}
	return nil
}

func (p *parser) function(name string, args []string) error {
	f := Function{Name: name, Chapter: p.chapter}
	for _, s := range args {
		a, err := p.arg(s)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		f.Args = append(f.Args, a)
	}
	p.all = append(p.all, f)
	return nil
}

func (p *parser) arg(s string) (Arg, error) {
	a := Arg{In: s[0] != '>', Out: s[0] == '>' || s[0] == '&'}
	s, length, _ := strings.Cut(strings.TrimLeft(s, ">&"), "[")
	a.Length = strings.TrimSuffix(length, "]")
	a.Name, a.Kind, _ = strings.Cut(s, ":")
	if a.Kind == "" {
		a.Kind = p.kinds[a.Name]
	}
	if a.Kind == "" {
		return a, fmt.Errorf("argument %q has no kind", a.Name)
	}
	return a, nil
}

// GoName returns the name of the Go function for f: TypeCreateHvector of Type_create_hvector.
func (f *Function) GoName() string { return goName(f.Name) }

// GoBase returns the name of the Go function for a collective's arguments.
func (f *Function) GoBase() string { return goName(f.Base) }

func goName(name string) string {
	var b strings.Builder
	for _, word := range strings.Split(name, "_") {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}
