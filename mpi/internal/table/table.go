// Package table holds the functions of MPI with their arguments, implemented and missing ones,
// and the handles and numbers of MPI 5.0's binary interface. The C and Go code between programs
// and package mpi, and an mpi.h, are generated from it.
package table

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"
)

//go:embed functions.txt
var text string

//go:embed missing.txt
var missingText string

// A Function is a function of MPI.
type Function struct {
	Name    string // without MPI_
	Args    []Arg
	Chapter string
	Face    bool // in C alone
	Form    Form
	Base    string // of a collective: the name of its blocking form
	Result  string // its kind, "" for the usual int
	Beside  bool   // not in MPI 5.0
}

// A Form is one of the three forms of a collective.
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
	In     bool   // the caller gives the argument
	Out    bool   // the function stores the argument
	Stores bool   // the argument is an address where the function stores
	Length string // of an array of handles or statuses
}

// Functions returns all functions, in the order of the table.
func Functions() []Function { return parsed().functions }

// Missing returns the functions of MPI 5.0 that gompi lacks.
func Missing() []Function { return parsed().missing }

var parsed = sync.OnceValue(func() (t struct{ functions, missing []Function }) {
	p := parser{kinds: map[string]Arg{}}
	p.parse("functions.txt", text)
	t.functions, p.all = p.all, nil
	p.parse("missing.txt", missingText)
	t.missing = slices.DeleteFunc(p.all, func(f Function) bool {
		return slices.ContainsFunc(t.functions, func(g Function) bool { return g.Name == f.Name })
	})
	return t
})

// parse adds the functions of a text.
func (p *parser) parse(name, text string) {
	p.beside = map[string]bool{}
	for i, line := range strings.Split(text, "\n") {
		if err := p.line(line); err != nil {
			panic(fmt.Errorf("%s:%d: %w", name, i+1, err)) // a test finds the error
		}
	}
}

type parser struct {
	kinds   map[string]Arg // by an argument's name: the default kind
	beside  map[string]bool
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
			p.kinds[strings.TrimPrefix(name, "*")] = Arg{Kind: rest[0], Stores: name[0] == '*'}
		}
	case "beside":
		for _, name := range rest {
			p.beside[name] = true
		}
	case "face":
		err := p.function(rest[0], rest[1:])
		p.all[len(p.all)-1].Face = true
		return err
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
	f := Function{Name: name, Chapter: p.chapter, Beside: p.beside[name] || strings.HasPrefix(p.chapter, "Fault tolerance")}
	for _, s := range args {
		if result, ok := strings.CutPrefix(s, "="); ok {
			f.Result = result
			continue
		}
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
	a := Arg{In: s[0] != '>', Out: s[0] == '>' || s[0] == '&', Stores: s[0] == '*'}
	s, length, _ := strings.Cut(strings.TrimLeft(s, ">&*"), "[")
	a.Length = strings.TrimSuffix(length, "]")
	a.Name, a.Kind, _ = strings.Cut(s, ":")
	if a.Kind == "" {
		usual := p.kinds[a.Name]
		a.Kind, a.Stores = usual.Kind, a.Stores || usual.Stores
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
