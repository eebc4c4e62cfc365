package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
)

// places returns the package below dir that has each function, by the function's name. Functions
// of dir itself are not in the map.
func places(dir string, functions []Function) (map[string]string, error) {
	wanted := map[string]bool{}
	for _, f := range functions {
		name, _ := goCall(&f)
		wanted[name] = true
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "*.go"))
	if err != nil {
		return nil, err
	}
	at := map[string]string{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || !wanted[fn.Name.Name] {
				continue
			}
			if other := at[fn.Name.Name]; other != "" {
				return nil, fmt.Errorf("%s is in packages %s and %s: want one", fn.Name.Name, other, f.Name.Name)
			}
			at[fn.Name.Name] = f.Name.Name
		}
	}
	return at, nil
}
