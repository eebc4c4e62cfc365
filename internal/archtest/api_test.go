package archtest

import (
	"bytes"
	"flag"
	"go/ast"
	"go/build"
	"go/parser"
	"go/printer"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// public are the packages promised to users.
var public = []string{"comm", "comm/commtest", "comm/ddp", "comm/ddp/compress", "comm/ddp/sampler",
	"comm/ddp/snapshot", "comm/topology", "comm/window", "cudaops", "hostfile"}

var writeAPI = flag.Bool("api", false, "write testdata/api.txt")

// testdata/api.txt has a line for each exported name of the public packages, as the files in Go's
// own folder api. A name that goes or changes breaks programs: CHANGELOG.md has to say its last part.
func TestExportedNamesAreListed(t *testing.T) {
	const file = "testdata/api.txt"
	text, err := os.ReadFile(file)
	if err != nil && !*writeAPI {
		t.Fatal(err)
	}
	changes, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	before, now := map[string]string{}, map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, what, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		before[name] = what
	}
	for _, p := range public {
		exported(t, p, now)
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if what, ok := now[name]; what == before[name] && ok {
			continue
		}
		if last := name[strings.LastIndex(name, ".")+1:]; !bytes.Contains(changes, []byte(last)) {
			t.Errorf("%s was %s, now %q, which breaks programs: CHANGELOG.md has to name %s", name, before[name], now[name], last)
		}
	}
	var lines strings.Builder
	for _, name := range slices.Sorted(maps.Keys(now)) {
		lines.WriteString(name + ": " + now[name] + "\n")
		if what, ok := before[name]; (what != now[name] || !ok) && !*writeAPI {
			t.Errorf("%s is %s, and was %q: make api writes that to %s", name, now[name], what, file)
		}
	}
	if len(now) < len(before) && !*writeAPI {
		t.Errorf("%d names are exported, and %s has %d: make api takes lines away", len(now), file, len(before))
	}
	if *writeAPI && !t.Failed() {
		if err := os.WriteFile(file, []byte(lines.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// exported adds the exported names of a package on Linux, and their declarations on one line.
func exported(t *testing.T, dir string, names map[string]string) {
	t.Helper()
	files, err := filepath.Glob("../../" + dir + "/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(dir, files, err)
	}
	linux := build.Default
	linux.GOOS, linux.GOARCH, linux.CgoEnabled = "linux", "amd64", true
	fset := token.NewFileSet()
	add := func(name string, node any) {
		var text bytes.Buffer
		if err := printer.Fprint(&text, fset, node); err != nil {
			t.Fatal(err)
		}
		names[dir+"."+name] = strings.Join(strings.Fields(text.String()), " ")
	}
	for _, name := range files {
		if ok, err := linux.MatchFile(filepath.Split(name)); err != nil || !ok || strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.FileExports(f)
		for _, d := range f.Decls {
			declared(d, add)
		}
	}
}

// declared calls add for each name of a declaration. The fields of a struct have lines of their own.
func declared(d ast.Decl, add func(name string, node any)) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		name := d.Name.Name
		if d.Recv != nil {
			name = receiver(d.Recv.List[0].Type) + "." + name
		}
		d.Body = nil
		add(name, d)
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.ValueSpec:
				for _, n := range s.Names {
					add(n.Name, &ast.BasicLit{Value: d.Tok.String()})
				}
			case *ast.TypeSpec:
				fields, isStruct := s.Type.(*ast.StructType)
				if !isStruct {
					add(s.Name.Name, s)
					continue
				}
				add(s.Name.Name, &ast.BasicLit{Value: "struct"})
				for _, f := range fields.Fields.List {
					for _, n := range f.Names {
						add(s.Name.Name+"."+n.Name, f.Type)
					}
					if f.Names == nil {
						add(s.Name.Name+"."+receiver(f.Type), f.Type)
					}
				}
			}
		}
	}
}

// receiver returns the name of the type of a receiver or an embedded field.
func receiver(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.StarExpr:
		return receiver(x.X)
	case *ast.IndexExpr:
		return receiver(x.X)
	case *ast.IndexListExpr:
		return receiver(x.X)
	case *ast.SelectorExpr:
		return x.Sel.Name
	case *ast.Ident:
		return x.Name
	}
	return ""
}
