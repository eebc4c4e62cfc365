package main

import (
	"bytes"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The header is what Go's source says now.
func TestTheSharedHeader(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("needs go")
	}
	want, err := sharedHeader("..")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile("../shared.h"); err != nil || !bytes.Equal(got, want) {
		t.Errorf("mpi/libmpi/shared.h (%v) is not what Go's source says: type go generate ./mpi/internal", err)
	}
}

// headerOf returns what the header has of a source.
func headerOf(t *testing.T, w *sharedWriter, source string) (string, error) {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "p.go", source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	p := checkedPackage{files: []*ast.File{f}, info: types.Info{Defs: map[*ast.Ident]types.Object{}}}
	if build.Default.GOROOT == "" { // built with -trimpath
		root, err := exec.Command("go", "env", "GOROOT").Output()
		if err != nil {
			t.Fatal(err)
		}
		build.Default.GOROOT = strings.TrimSpace(string(root))
	}
	config := types.Config{Sizes: w.amd64, Importer: importer.ForCompiler(fset, "source", nil)}
	if p.Package, err = config.Check("gompi/p", fset, p.files, &p.info); err != nil {
		t.Fatal(err)
	}
	if err := w.collect(p); err != nil {
		return "", err
	}
	text, err := w.body()
	return string(text), err
}

func TestWhatCGetsOfASource(t *testing.T) {
	got, err := headerOf(t, newSharedWriter(), `package p

import (
	"sync/atomic"
	"unsafe"
)

//c:const GOMPI_P_
const (
	isFirst = 1 << iota
	large   = 1<<64 - 1
	numAll
)

type embedded struct{ Wide atomic.Uint64 }

//c:struct gompi_outer
type outer struct {
	small bool
	embedded
	inner
	_ [4]byte
	pairs [2]struct1
	names []byte
	//c:type struct gompi_inner *
	anyHTTPCode [3]unsafe.Pointer
	f func()
	next *outer
}

type struct1 struct{ a, b int32 }

//c:struct gompi_inner
type inner struct{ word atomic.Uint32 }
`)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"enum {\n\tGOMPI_P_IS_FIRST = 1,\n};\n#define GOMPI_P_LARGE UINT64_C(0xffffffffffffffff)\n\n",
		"struct gompi_inner {\n\tuint32_t word;\n};\n",
		"struct gompi_outer {\n\tuint8_t small;\n\tuint8_t pad_0[7];\n\tuint64_t wide;\n\tstruct gompi_inner inner;\n\tuint8_t pad_1[4];\n" +
			"\tstruct {\n\t\tint32_t a;\n\t\tint32_t b;\n\t} pairs[2];\n\tuint8_t *names;\n\tint64_t names_len, names_cap;\n" +
			"\tstruct gompi_inner *any_http_code[3];\n\tuint64_t f[1];\n\tstruct gompi_outer *next;\n};\n",
		"_Static_assert(offsetof(struct gompi_outer, pairs[0].b) == 28, \"pairs[0].b\");\n",
		"_Static_assert(sizeof(struct gompi_outer) == 104, \"struct gompi_outer\");\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("want\n%sin\n%s", want, got)
		}
	}
	if strings.Index(got, "struct gompi_inner {") > strings.Index(got, "struct gompi_outer {") {
		t.Errorf("a struct comes before one that it contains:\n%s", got)
	}
}

func TestWhatIsNotSharedWithC(t *testing.T) {
	for source, want := range map[string]string{
		"//c:struct gompi_n\ntype n int":                                  "n is no struct",
		"//c:const GOMPI_\nconst x = 1.5":                                 "want an integer",
		"//c:struct gompi_s\ntype s struct {\n\t//c:type char\n\tx int }": "8 bytes are no char",
		"//c:struct gompi_s\ntype s struct{ x int }":                      "elsewhere on arm64",
	} {
		w := newSharedWriter()
		if strings.HasSuffix(want, "arm64") {
			w.arm64 = types.SizesFor("gc", "386") // of the two there is no such type
		}
		if _, err := headerOf(t, w, "package p\n"+source); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", source, err, want)
		}
	}
}
