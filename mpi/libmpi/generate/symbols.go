package main

import (
	"debug/elf"
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// A symbol is a name that a library exports. Functions have no size.
type symbol struct {
	name string
	size uint64
}

// readSymbols returns the names that a library exports, except the names that every library has.
func readSymbols(file string) ([]symbol, error) {
	lib, err := elf.Open(file)
	if err != nil {
		return nil, err
	}
	defer lib.Close()
	all, err := lib.DynamicSymbols()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var out []symbol
	for _, s := range all {
		if s.Section == elf.SHN_UNDEF || s.Section >= elf.SHN_LORESERVE || strings.HasPrefix(s.Name, "_") {
			continue
		}
		switch elf.ST_TYPE(s.Info) {
		case elf.STT_FUNC:
			out = append(out, symbol{s.Name, 0})
		case elf.STT_OBJECT:
			out = append(out, symbol{s.Name, max(s.Size, 1)})
		}
	}
	slices.SortFunc(out, func(a, b symbol) int { return strings.Compare(a.name, b.name) })
	return slices.Compact(out), nil
}

// newerText has names that newer libraries export than the installed ones.
//
//go:embed newer.txt
var newerText string

// newer are the symbols of these names, and of the functions that gompi lacks.
func newer() (all []symbol) {
	for _, f := range Missing() {
		all = append(all, symbol{"MPI_" + f.Name, 0}, symbol{"PMPI_" + f.Name, 0})
	}
	for line := range strings.Lines(newerText) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0 || fields[0] == "#":
		case len(fields) == 2: // an object
			size, _ := strconv.ParseUint(fields[1], 10, 64)
			all = append(all, symbol{fields[0], size})
		default:
			all = append(all, symbol{fields[0], 0})
			if !strings.HasPrefix(line, "MPIR_") { // other names are internal
				all = append(all, symbol{"P" + fields[0], 0})
			}
		}
	}
	return all
}

// withNewer adds the newer symbols that are not among symbols.
func withNewer(symbols []symbol) []symbol {
	for _, n := range newer() {
		if !slices.ContainsFunc(symbols, func(s symbol) bool { return s.name == n.name }) {
			symbols = append(symbols, n)
		}
	}
	return symbols
}

// writeSymbols writes definitions of the exported names that functions.c lacks. They are weak, so
// that functions written by hand take their place. The file includes no header, since headers
// declare these names otherwise.
func writeSymbols(w io.Writer, symbols []symbol, functions []Function, more []string) {
	have := map[string]bool{}
	for _, f := range functions {
		have["MPI_"+f.Name], have["PMPI_"+f.Name] = true, true
	}
	for _, name := range more {
		have[name], have["P"+name] = true, true
	}
	fmt.Fprint(w, "int gompi_missing(const char *name);\n")
	for _, s := range symbols {
		switch {
		case have[s.name]:
		case s.size > 0:
			fmt.Fprintf(w, "__attribute__((weak, aligned(64))) char %s[%d];\n", s.name, s.size)
		default:
			fmt.Fprintf(w, "__attribute__((weak)) int %s(void) { return gompi_missing(\"%s\"); }\n", s.name, s.name)
		}
	}
}
