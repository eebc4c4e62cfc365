package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/errs"
)

// The header declares what MPICH 5's declares for the same interface, with the same numbers.
func TestTheStandardHeaderIsAsMPICHs(t *testing.T) {
	theirs := "../../../bin/peers/mpich/include/mpi_abi.h"
	if _, err := os.Stat(theirs); err != nil {
		t.Skipf("%v: make peers", err)
	}
	work := t.TempDir()
	if err := generateStandard(work); err != nil {
		t.Fatal(err)
	}
	ours := filepath.Join(work, "mpi.h")
	comparePrototypes(t, ours, theirs)
	compareNumbers(t, ours, theirs)
}

func comparePrototypes(t *testing.T, ours, theirs string) {
	t.Helper()
	have, err := readPrototypes([]string{ours})
	if err != nil {
		t.Fatal(err)
	}
	want, err := readPrototypes([]string{theirs})
	if err != nil {
		t.Fatal(err)
	}
	for name, w := range want {
		if name == "MPI_Psend_init" || name == "MPI_Precv_init" {
			continue // as MPI 4.0 has them, where MPI 5.0 has two forms
		}
		if h, ok := have[name]; !ok || typesOf(h) != typesOf(w) {
			t.Errorf("%s is %q, want %q", name, typesOf(h), typesOf(w))
		}
	}
	if len(want) < 600 {
		t.Errorf("%d functions are declared, want all", len(want))
	}
}

// typesOf returns the types of a function, an array's as that of a pointer.
func typesOf(p prototype) string {
	types := []string{p.Result}
	for _, x := range p.Params {
		typ := x.Type
		if rest, ok := strings.CutPrefix(x.Array, "[]"); ok {
			typ += " *" + rest
		}
		typ = strings.ReplaceAll(typ, " *", "*")
		types = append(types, strings.Replace(typ, "_function*", "_function", 1)) // a function is passed by its address
	}
	return strings.Join(types, ", ")
}

var (
	defined    = regexp.MustCompile(`(?m)^#define\s+(MPI_\w+)\s+\(*(?:\(\s*MPI_\w+[ *]*\))?\s*(-?(?:0x)?[0-9a-fA-F]+)\)*\s*(?:/\*.*)?$`)
	enumerated = regexp.MustCompile(`(?m)^\s+(MPI_\w+)\s*=\s*(-?(?:0x)?[0-9a-fA-F]+)\b`)
)

func numbersOf(t *testing.T, file string) map[string]int64 {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]int64{}
	for _, m := range append(defined.FindAllStringSubmatch(string(text), -1),
		enumerated.FindAllStringSubmatch(string(text), -1)...) {
		n, err := strconv.ParseInt(m[2], 0, 64)
		if err != nil {
			t.Fatalf("%s: %v", m[1], err)
		}
		all[m[1]] = n
	}
	return all
}

func compareNumbers(t *testing.T, ours, theirs string) {
	t.Helper()
	have, want := numbersOf(t, ours), numbersOf(t, theirs)
	for name, w := range want {
		if name == "MPI_Psend_init" || name == "MPI_Precv_init" {
			continue // as MPI 4.0 has them, where MPI 5.0 has two forms
		}
		if h, ok := have[name]; !ok || h != w {
			t.Errorf("%s is %d (%v), want %d", name, h, ok, w)
		}
	}
	if len(want) < 300 {
		t.Errorf("%d numbers are there, want all", len(want))
	}
}

// Go's numbers, and those of error classes, are the table's.
func TestNumbersOfTheTable(t *testing.T) {
	numbers := map[string]int{}
	for _, c := range Constants() {
		numbers[c.Name] = c.Value
	}
	for name, have := range map[string]int{
		"MPI_ANY_SOURCE": abi.AnySource, "MPI_ANY_TAG": abi.AnyTag, "MPI_PROC_NULL": abi.ProcNull,
		"MPI_ROOT":      abi.RootHere,
		"MPI_UNDEFINED": abi.Undefined, "MPI_COMM_TYPE_SHARED": abi.SplitShared,
		"MPI_COMM_TYPE_HW_UNGUIDED": abi.SplitUnguided,
		"MPI_COMM_TYPE_HW_GUIDED":   abi.SplitGuided, "MPI_CART": abi.CartTopology, "MPI_GRAPH": abi.GraphTopology,
		"MPI_DIST_GRAPH": abi.DistGraphTopology, "MPI_IDENT": abi.Identical, "MPI_CONGRUENT": abi.Congruent,
		"MPI_SIMILAR": abi.Similar, "MPI_UNEQUAL": abi.Unequal,
	} {
		if want, ok := numbers[name]; !ok || have != want {
			t.Errorf("%s is %d in Go, want %d (%v)", name, have, want, ok)
		}
	}
	for name, value := range numbers {
		if class := errs.ClassName(abi.Class(value)); strings.HasPrefix(name, "MPI_ERR_") &&
			name != "MPI_ERR_LASTCODE" && class != name {
			t.Errorf("the error class %d is %s, want %s", value, class, name)
		}
	}
}

// What is missing is declared and refused by its name, and nothing is both there and missing.
func TestMissingFunctionsAreRefused(t *testing.T) {
	work := t.TempDir()
	if err := generateStandard(work); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(work, "symbols.c"))
	if err != nil {
		t.Fatal(err)
	}
	functions, err := os.ReadFile(filepath.Join(work, "functions.c"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range Missing() {
		if f.Beside {
			continue
		}
		if by, _ := raiserOf(&f); by == "Comm" { // whose error handler is called
			if want := `return gompi_missing_on("MPI_` + f.Name +
				`", IN_comm(comm));`; strings.Count(string(functions), want) != 1 {
				t.Errorf("MPI_%s is not refused once", f.Name)
			}
			continue
		}
		for _, prefix := range []string{"MPI_", "PMPI_"} {
			name := prefix + f.Name
			if want := `int ` + name + `(void) { return gompi_missing("` + name +
				`"); }`; strings.Count(string(text), want) != 1 {
				t.Errorf("%s is not refused once", name)
			}
		}
	}
}
