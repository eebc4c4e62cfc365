package main

import (
	"debug/elf"
	"fmt"
	"io"
	"slices"
	"strings"

	"gompi/comm/internal/mpi/table"
)

// A symbol is a name that a library exports. Functions have no size.
type symbol struct {
	name string
	size uint64
}

// readSymbols returns what a library exports, but for what every one does.
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

// newer are functions that Open MPI 5.0.11 exports and gompi does not implement. The installed
// library may be older.
var newer = strings.Fields(`Parrived Pready Pready_list Pready_range Precv_init Psend_init
	Status_c2f08 Status_f082c Status_f082f Status_f2f08`)

// withNewer adds the names of newer to symbols.
func withNewer(symbols []symbol) []symbol {
	for _, prefix := range []string{"MPI_", "PMPI_"} {
		for _, name := range newer {
			has := func(s symbol) bool { return s.name == prefix+name }
			if !slices.ContainsFunc(symbols, has) {
				symbols = append(symbols, symbol{name: prefix + name})
			}
		}
	}
	return symbols
}

// writeSymbols writes definitions for what functions.c has not. They are weak: what is written by
// hand takes their place. The file includes no header, since that declares them otherwise.
func writeSymbols(w io.Writer, symbols []symbol, functions []table.Function, wide []string) {
	have := map[string]bool{}
	for _, f := range functions {
		have["MPI_"+f.Name], have["PMPI_"+f.Name] = true, true
	}
	for _, name := range wide {
		have["MPI_"+name], have["PMPI_"+name] = true, true
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
