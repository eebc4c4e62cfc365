package main

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

//go:embed kinds.txt
var kindsText string

// A Kind is a kind of arguments: a row of kinds.txt.
type Kind struct {
	Name     string
	c, large string // types in C; large in forms for large counts, "" if it is no wider
	Go       string // methods in Go: comm and setComm of Args
	Macro    string // macros in C: IN_comm and OUT_comm
	constant bool
	Registry string // of a handle's objects, such as comms.Groups
	Raises   bool
	Nulled   bool
	Checked  bool // its objects have a method Check
}

var columns = regexp.MustCompile(` {2,}`)

// kind adds a kind, or the names of arguments of the last one.
func (p *tables) kind(line string) error {
	if line == "" || line[0] == '#' {
		return nil
	}
	if names, ok := strings.CutPrefix(line, "    "); ok {
		for _, name := range strings.Fields(names) {
			p.usual[strings.TrimPrefix(name, "*")] = Arg{Kind: p.last, Stores: name[0] == '*'}
		}
		return nil
	}
	fields := append(columns.Split(line, -1), "")
	if len(fields) < 6 {
		return fmt.Errorf("kind %q: want a name, two types in C, methods in Go, macros", line)
	}
	for i, s := range fields {
		fields[i] = strings.TrimSuffix(s, "-")
	}
	k := Kind{Name: fields[0], c: fields[1], large: fields[2], Go: fields[3], Macro: fields[4]}
	is := map[string]*bool{"const": &k.constant, "raises": &k.Raises, "nulled": &k.Nulled,
		"checked": &k.Checked}
	for _, s := range strings.Fields(fields[5]) {
		switch {
		case strings.Contains(s, "."):
			k.Registry = s
		case is[s] == nil:
			return fmt.Errorf("kind %s: %q is no fact", k.Name, s)
		default:
			*is[s] = true
		}
	}
	if k.Registry != "" {
		p.handles = append(p.handles, k)
	}
	p.kinds[k.Name], p.last = k, k
	return nil
}

// A Prototype is how a function is declared in C.
type Prototype struct {
	Result string
	Params []Param
}

// A Param is a parameter: "const int", "ranks", "[]".
type Param struct{ Type, Name, Array string }

// String returns the parameter as written in C.
func (p Param) String() string {
	if strings.HasSuffix(p.Type, "*") || p.Name == "" {
		return p.Type + p.Name + p.Array
	}
	return p.Type + " " + p.Name + p.Array
}

// HasLarge reports whether f has a form for large counts.
func (f *Function) HasLarge() bool {
	return slices.ContainsFunc(f.Args, func(a Arg) bool { return a.Kind.large != "" })
}

// Prototype returns how f is declared, or its form for large counts.
func (f *Function) Prototype(large bool) Prototype {
	p := Prototype{Result: "int"}
	if f.Result.Name != "" {
		p.Result = f.Result.c
	}
	for _, a := range f.Args {
		p.Params = append(p.Params, f.param(a, large))
	}
	return p
}

func (f *Function) param(a Arg, large bool) Param {
	typ := a.Kind.c
	if large && a.Kind.large != "" {
		typ = a.Kind.large
	}
	if typ == "..." {
		return Param{Type: typ}
	}
	object, _, _ := strings.Cut(f.Name, "_")
	p := Param{Type: strings.Replace(typ, "OBJECT", object, 1), Name: a.Name}
	if i := strings.IndexByte(p.Type, '['); i >= 0 {
		p.Type, p.Array = p.Type[:i], p.Type[i:]
	}
	isStatus := a.Kind.Name == "status"
	switch {
	case a.Length != "":
		p.Array = "[]"
	case isStatus && !a.Out, a.Out && !strings.HasSuffix(p.Type, "*"):
		p.Type += " *"
	}
	if a.Kind.constant && !a.Stores || (a.Length != "" || isStatus) && !a.Out {
		p.Type = "const " + p.Type
	}
	return p
}
