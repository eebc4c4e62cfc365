package main

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"
)

//go:embed functions.txt
var functionsText string

// A Function is a function of MPI.
type Function struct {
	Name    string // without MPI_
	Args    []Arg
	Chapter string
	Face    bool // in C alone
	Missing bool
	Form    Form
	Base    string // of a collective: the name of its blocking form
	Result  Kind   // zero for the usual int
	Facts
}

// Facts are the facts about a function that functions.txt explains.
type Facts struct {
	Counted, Early, Large, Collectives, Beside bool

	Other string // its other name
	On    string // the object whose error handler its errors call
	Go    string // its function in Go, "" for the one of its name
	Check string // the method that checks its object, "" if none does
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
	Kind   Kind
	In     bool   // the caller gives the argument
	Out    bool   // the function stores the argument
	Stores bool   // the argument is an address where the function stores
	Length string // of an array of handles or statuses
}

// Functions returns the functions that gompi has, in the order of the table.
func Functions() []Function { return of(false) }

// Missing returns the functions of MPI 5.0 that gompi lacks.
func Missing() []Function { return of(true) }

func of(missing bool) []Function {
	return slices.DeleteFunc(slices.Clone(parsed().all), func(f Function) bool { return f.Missing != missing })
}

// HandleKinds returns the kinds of handles.
func HandleKinds() []Kind { return parsed().handles }

var parsed = sync.OnceValue(func() *tables {
	p := &tables{kinds: map[string]Kind{}, usual: map[string]Arg{}}
	parse("kinds.txt", kindsText, p.kind)
	parse("functions.txt", functionsText, p.line)
	return p
})

func parse(name, text string, line func(string) error) {
	for i, s := range strings.Split(text, "\n") {
		if err := line(s); err != nil {
			panic(fmt.Errorf("%s:%d: %w", name, i+1, err)) // a test finds the error
		}
	}
}

type tables struct {
	kinds   map[string]Kind
	last    Kind
	handles []Kind
	usual   map[string]Arg // by an argument's name
	chapter string
	facts   Facts // of the chapter
	all     []Function
}

func (p *tables) line(line string) error {
	line, facts, _ := strings.Cut(line, " | ")
	fields := strings.Fields(line)
	if len(fields) == 0 || fields[0] == "#" {
		return nil
	}
	if fields[0] == "##" {
		p.chapter, p.facts = strings.Join(fields[1:], " "), Facts{}
		return p.facts.add(facts)
	}
	n := len(p.all)
	var err error
	switch first, rest := fields[0], fields[1:]; first {
	case "coll":
		err = p.collective(rest[0], rest[1:])
	case "face", "missing":
		err = p.function(rest[0], rest[1:])
		p.all[n].Face, p.all[n].Missing = first == "face", first == "missing"
	default:
		err = p.function(first, rest)
	}
	for i := n; i < len(p.all) && err == nil; i++ {
		err = p.all[i].add(facts)
	}
	return err
}

// add adds the facts of a text.
func (f *Facts) add(text string) error {
	is := map[string]*bool{"counted": &f.Counted, "early": &f.Early, "large": &f.Large,
		"collectives": &f.Collectives, "beside": &f.Beside}
	for _, s := range strings.Fields(text) {
		if on, ok := strings.CutPrefix(s, "on:"); ok {
			f.On = on
		} else if how, ok := strings.CutPrefix(s, "checked"); ok {
			f.Check = "Check" + strings.TrimPrefix(how, ":")
		} else if s == "unchecked" {
			f.Check = ""
		} else if code, ok := strings.CutPrefix(s, "go:"); ok {
			f.Go = code
		} else if strings.HasPrefix(s, "MPIX_") {
			f.Other = s
		} else if fact := is[strings.TrimPrefix(s, "un")]; fact != nil {
			*fact = !strings.HasPrefix(s, "un")
		} else {
			return fmt.Errorf("%q is no fact", s)
		}
	}
	return nil
}

// collective adds the blocking, the nonblocking and the persistent form.
func (p *tables) collective(name string, args []string) error {
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
		if f.form == Persistent { // which communicates where it is started
			last.Counted, last.Collectives = false, !strings.HasPrefix(name, "Neighbor_")
		}
	}
	return nil
}

func (p *tables) function(name string, args []string) error {
	f := Function{Name: name, Chapter: p.chapter, Facts: p.facts}
	if f.Other == "MPIX_" {
		f.Other += name
	}
	for _, s := range args {
		if result, ok := strings.CutPrefix(s, "="); ok {
			f.Result = p.kinds[result]
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

func (p *tables) arg(s string) (Arg, error) {
	a := Arg{In: s[0] != '>', Out: s[0] == '>' || s[0] == '&', Stores: s[0] == '*'}
	s, length, _ := strings.Cut(strings.TrimLeft(s, ">&*"), "[")
	a.Length = strings.TrimSuffix(length, "]")
	name, kind, given := strings.Cut(s, ":")
	a.Name, a.Kind = name, p.kinds[kind]
	if usual, ok := p.usual[name]; !given && ok {
		a.Kind, a.Stores = usual.Kind, a.Stores || usual.Stores
	} else if !given {
		a.Kind = p.kinds[name]
	}
	if a.Kind.Name == "" {
		return a, fmt.Errorf("argument %q has no kind", s)
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
