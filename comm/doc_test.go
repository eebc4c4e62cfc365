package comm_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"gompi/comm"
)

// go doc shows no field of a type that another package defines: the comment of its alias has them.
func TestCommentsOfAliasesNameTheirFields(t *testing.T) {
	fields := map[string]reflect.Type{
		"MismatchError": reflect.TypeFor[comm.MismatchError](),
		"RevokedError":  reflect.TypeFor[comm.RevokedError](),
		"Loc":           reflect.TypeFor[comm.Loc[int64]](),
		"Buffer":        reflect.TypeFor[comm.Buffer](),
	}
	seen := 0
	for spec, comment := range aliases(t) {
		of, ok := fields[spec.Name.Name]
		if !ok {
			continue
		}
		seen++
		for f := range of.Fields() {
			if f.IsExported() && !strings.Contains(comment, f.Name) {
				t.Errorf("the comment of comm.%s has no word of %s", spec.Name.Name, f.Name)
			}
		}
	}
	if seen != len(fields) {
		t.Errorf("%d of the types %v are aliases, want all", seen, fields)
	}
}

// aliases returns the aliases that package comm declares, with their comments.
func aliases(t *testing.T) map[*ast.TypeSpec]string {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	found := make(map[*ast.TypeSpec]string)
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.TYPE {
				continue
			}
			for _, s := range g.Specs {
				if s := s.(*ast.TypeSpec); s.Assign.IsValid() {
					found[s] = g.Doc.Text() + s.Doc.Text()
				}
			}
		}
	}
	return found
}
