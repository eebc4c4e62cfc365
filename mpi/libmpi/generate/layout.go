package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"math"
	"slices"
	"strings"
	"unicode"
)

const directiveMark = "//c:"

// directive returns the argument of a directive in comments, or "".
func directive(name string, comments ...*ast.CommentGroup) string {
	for _, group := range comments {
		for i := 0; group != nil && i < len(group.List); i++ {
			if rest, ok := strings.CutPrefix(group.List[i].Text, directiveMark+name+" "); ok {
				return rest
			}
		}
	}
	return ""
}

// A sharedStruct is a marked type.
type sharedStruct struct {
	name, comment string
	typ           *types.Struct
	syntax        *ast.StructType
}

// A sharedConstants is the marked constants of a package.
type sharedConstants struct {
	comment string
	names   []string
	values  []constant.Value
}

// A sharedWriter writes the header. All components of a type are known by their names in Go,
// since an imported package has other objects than the same package when checked.
type sharedWriter struct {
	amd64, arm64 types.Sizes
	structs      []*sharedStruct // a contained struct comes before its container
	byType       map[string]*sharedStruct
	constants    []sharedConstants
	syntax       map[string]*ast.StructType // of all structs of these packages
}

func newSharedWriter() *sharedWriter {
	return &sharedWriter{
		amd64: types.SizesFor("gc", "amd64"), arm64: types.SizesFor("gc", "arm64"),
		byType: map[string]*sharedStruct{}, syntax: map[string]*ast.StructType{},
	}
}

// collect finds the directives of a package.
func (w *sharedWriter) collect(p checkedPackage) error {
	from := strings.TrimPrefix(p.Path(), "gompi/")
	for _, f := range p.files {
		for _, d := range f.Decls {
			d, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range d.Specs {
				if t, ok := s.(*ast.TypeSpec); ok {
					if err := w.collectType(from, p, t, directive("struct", d.Doc, t.Doc)); err != nil {
						return err
					}
				}
			}
			if d.Tok == token.CONST {
				w.collectConstants(from, p, d)
			}
		}
	}
	return nil
}

func (w *sharedWriter) collectType(from string, p checkedPackage, t *ast.TypeSpec, name string) error {
	syntax, ok := t.Type.(*ast.StructType)
	if !ok {
		if name != "" {
			return fmt.Errorf("%s.%s is no struct: //c:struct %s wants one", from, t.Name.Name, name)
		}
		return nil
	}
	object := p.info.Defs[t.Name]
	key := typeName(object.Type())
	w.syntax[key] = syntax
	if name != "" {
		s := &sharedStruct{name, from + ": " + t.Name.Name, object.Type().Underlying().(*types.Struct), syntax}
		w.byType[key] = s
		w.structs = append(w.structs, s)
	}
	return nil
}

// collectConstants adds the constants of a declaration: all of them, or the marked ones.
func (w *sharedWriter) collectConstants(from string, p checkedPackage, d *ast.GenDecl) {
	c := sharedConstants{comment: from}
	for _, s := range d.Specs {
		s := s.(*ast.ValueSpec)
		prefix := directive("const", s.Doc, d.Doc)
		for _, name := range s.Names {
			if prefix != "" && name.Name != "_" && !strings.HasPrefix(name.Name, "num") {
				c.names = append(c.names, prefix+strings.ToUpper(snake(name.Name)))
				c.values = append(c.values, p.info.Defs[name].(*types.Const).Val())
			}
		}
	}
	if last := len(w.constants) - 1; last >= 0 && w.constants[last].comment == from {
		w.constants[last].names = append(w.constants[last].names, c.names...)
		w.constants[last].values = append(w.constants[last].values, c.values...)
	} else if len(c.names) > 0 {
		w.constants = append(w.constants, c)
	}
}

// typeName names a type in all packages.
func typeName(t types.Type) string { return types.TypeString(t, (*types.Package).Path) }

// snake returns Go's name in C's manner: waitingFor is waiting_for.
func snake(name string) string {
	var b strings.Builder
	was := rune('_')
	for i, r := range name {
		next := rune('_')
		if i+1 < len(name) {
			next = rune(name[i+1])
		}
		if unicode.IsUpper(r) && i > 0 && (unicode.IsLower(was) || unicode.IsLower(next)) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
		was = r
	}
	return b.String()
}

// body returns the constants and types, and the assertions that the compiler checks.
func (w *sharedWriter) body() ([]byte, error) {
	var b bytes.Buffer
	for _, c := range w.constants {
		if err := writeConstants(&b, c); err != nil {
			return nil, err
		}
	}
	done := map[*sharedStruct]bool{}
	for _, s := range w.structs {
		if err := w.writeStruct(&b, s, done); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

func writeConstants(b *bytes.Buffer, c sharedConstants) error {
	var enum, large strings.Builder
	for i, name := range c.names {
		v := constant.ToInt(c.values[i])
		if n, ok := constant.Int64Val(v); ok && int64(int32(n)) == n {
			fmt.Fprintf(&enum, "\t%s = %d,\n", name, n)
		} else if n, ok := constant.Uint64Val(v); ok && n > math.MaxInt32 {
			fmt.Fprintf(&large, "#define %s UINT64_C(0x%x)\n", name, n)
		} else {
			return fmt.Errorf("%s = %v: want an integer of 64 bits", name, c.values[i])
		}
	}
	fmt.Fprintf(b, "/* %s */\n", c.comment)
	if enum.Len() > 0 {
		fmt.Fprintf(b, "enum {\n%s};\n", enum.String())
	}
	fmt.Fprintf(b, "%s\n", large.String())
	return nil
}

// A place is a field's name in C, and the offset that the field must have.
type place struct {
	path string
	at   int64
}

// A structText is a struct under construction: its fields, up to a length.
type structText struct {
	fields bytes.Buffer
	indent string
	places []place
	length int64
	pads   int
}

func (x *structText) field(format string, args ...any) {
	x.fields.WriteString(x.indent)
	fmt.Fprintf(&x.fields, format, args...)
	x.fields.WriteString(";\n")
}

// padTo writes the bytes that no field has.
func (x *structText) padTo(at int64) {
	if n := at - x.length; n > 0 {
		x.field("uint8_t pad_%d[%d]", x.pads, n)
		x.pads++
		x.length = at
	}
}

// writeStruct writes a struct, after the structs that it contains.
func (w *sharedWriter) writeStruct(b *bytes.Buffer, s *sharedStruct, done map[*sharedStruct]bool) error {
	if done[s] {
		return nil
	}
	done[s] = true
	x := &structText{indent: "\t"}
	before := func(inner *sharedStruct) error { return w.writeStruct(b, inner, done) }
	if err := w.addFields(x, "", 0, s.typ, s.syntax, before); err != nil {
		return fmt.Errorf("%s: %w", s.comment, err)
	}
	size := w.amd64.Sizeof(s.typ)
	x.padTo(size)
	fmt.Fprintf(b, "/* %s */\nstruct %s {\n%s};\n", s.comment, s.name, x.fields.String())
	fmt.Fprintf(b, "_Static_assert(sizeof(struct %s) == %d, \"struct %[1]s\");\n", s.name, size)
	for _, p := range x.places {
		fmt.Fprintf(b, "_Static_assert(offsetof(struct %s, %s) == %d, \"%[2]s\");\n", s.name, p.path, p.at)
	}
	b.WriteByte('\n')
	return nil
}

// addFields adds the fields of a struct that lies at base, and is at path in the outermost.
func (w *sharedWriter) addFields(x *structText, path string, base int64, t *types.Struct, syntax *ast.StructType,
	before func(*sharedStruct) error) error {
	directives := fieldDirectives(syntax)
	fields := slices.Collect(t.Fields())
	at, other := w.amd64.Offsetsof(fields), w.arm64.Offsetsof(fields)
	for i, f := range fields {
		if at[i] != other[i] || w.amd64.Sizeof(f.Type()) != w.arm64.Sizeof(f.Type()) {
			return fmt.Errorf("field %s lies elsewhere on arm64 than on amd64: want one layout", f.Name())
		}
		if f.Name() == "_" {
			continue // padding
		}
		x.padTo(base + at[i])
		inner, isStruct := f.Type().Underlying().(*types.Struct)
		if f.Embedded() && isStruct && w.byType[typeName(f.Type())] == nil {
			if err := w.addFields(x, path, base+at[i], inner, w.syntax[typeName(f.Type())], before); err != nil {
				return err
			}
			continue
		}
		name := snake(f.Name())
		x.places = append(x.places, place{path + name, base + at[i]})
		if err := w.addField(x, path, name, f.Type(), directives[f.Name()], before); err != nil {
			return fmt.Errorf("field %s: %w", f.Name(), err)
		}
		x.length = base + at[i] + w.amd64.Sizeof(f.Type())
	}
	return nil
}

func fieldDirectives(s *ast.StructType) map[string]string {
	all := map[string]string{}
	for i := 0; s != nil && i < len(s.Fields.List); i++ {
		f := s.Fields.List[i]
		for _, name := range f.Names {
			all[name.Name] = directive("type", f.Doc)
		}
	}
	return all
}

// addField adds a field, at path+name of the outermost struct.
func (w *sharedWriter) addField(x *structText, path, name string, t types.Type, as string,
	before func(*sharedStruct) error) error {
	bounds, first := "", ""
	for a, ok := t.Underlying().(*types.Array); ok; a, ok = t.Underlying().(*types.Array) {
		bounds, first, t = bounds+fmt.Sprintf("[%d]", a.Len()), first+"[0]", a.Elem()
	}
	if as != "" {
		if size := w.amd64.Sizeof(t); (size == 8) != strings.HasSuffix(as, "*") || size != 8 && size != 1 {
			return fmt.Errorf("%d bytes are no %s", size, as)
		}
		x.field("%s%s", join(as, name), bounds)
		return nil
	}
	if c := w.scalar(t); c != "" {
		x.field("%s%s", join(c, name), bounds)
		return nil
	}
	if s := w.byType[typeName(t)]; s != nil {
		x.field("struct %s %s%s", s.name, name, bounds)
		return before(s)
	}
	switch u := t.Underlying().(type) {
	case *types.Slice:
		if bounds == "" {
			x.places = append(x.places, place{path + name + "_len", x.length + 8},
				place{path + name + "_cap", x.length + 16})
			x.field("%s", join(w.pointer(u.Elem()), name))
			x.field("int64_t %s_len, %[1]s_cap", name)
			return nil
		}
	case *types.Struct:
		if syntax := w.syntax[typeName(t)]; syntax != nil {
			inner := &structText{indent: x.indent + "\t"}
			if err := w.addFields(inner, "", 0, u, syntax, before); err != nil {
				return err
			}
			inner.padTo(w.amd64.Sizeof(t))
			x.field("struct {\n%s%s} %s%s", inner.fields.String(), x.indent, name, bounds)
			for _, p := range inner.places {
				x.places = append(x.places, place{path + name + first + "." + p.path, x.length + p.at})
			}
			return nil
		}
	}
	// Go's alone: words, or bytes.
	if size := w.amd64.Sizeof(t); w.amd64.Alignof(t) == 8 && size%8 == 0 {
		x.field("uint64_t %s%s[%d]", name, bounds, size/8)
	} else {
		x.field("uint8_t %s%s[%d]", name, bounds, size)
	}
	return nil
}

func join(ctype, name string) string {
	if strings.HasSuffix(ctype, "*") {
		return ctype + name
	}
	return ctype + " " + name
}

// pointer returns a pointer to a type in C.
func (w *sharedWriter) pointer(to types.Type) string {
	if s := w.byType[typeName(to)]; s != nil {
		return "struct " + s.name + " *"
	}
	return join(cmp.Or(w.scalar(to), "void"), "*")
}

// scalar returns the C type of a Go type, or "" for aggregates and for types that only Go has.
func (w *sharedWriter) scalar(t types.Type) string {
	if n, ok := types.Unalias(t).(*types.Named); ok && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == "sync/atomic" {
		return map[string]string{
			"Uint32": "uint32_t", "Int32": "int32_t", "Bool": "uint32_t", "Uint64": "uint64_t", "Int64": "int64_t",
			"Uintptr": "uintptr_t",
		}[n.Obj().Name()]
	}
	switch u := t.Underlying().(type) { // a bool is a byte: so compilers of C look at several at once
	case *types.Pointer:
		return w.pointer(u.Elem())
	case *types.Basic:
		return map[types.BasicKind]string{
			types.Bool: "uint8_t", types.Int: "int64_t", types.Uint: "uint64_t", types.Uintptr: "uintptr_t",
			types.UnsafePointer: "void *",
			types.Int8:          "int8_t", types.Int16: "int16_t", types.Int32: "int32_t", types.Int64: "int64_t",
			types.Uint8: "uint8_t", types.Uint16: "uint16_t", types.Uint32: "uint32_t", types.Uint64: "uint64_t",
		}[u.Kind()]
	}
	return ""
}
