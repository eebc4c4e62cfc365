package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"gompi/mpi/internal/table"
)

// writeDocs writes the page of implemented functions, and of the headers' further functions.
func writeDocs(w io.Writer, all []table.Function, protos map[string]prototype) {
	fmt.Fprint(w, "# The functions of MPI that gompi has\n\n"+
		"<!-- Written by `go run ./mpi/libmpi/generate docs`: change functions.txt, not this page. -->\n\n"+
		"Programs call them as [MPI programs on gompi](mpi.md) says. A collective stands for its three forms:\n"+
		"`Bcast`, `Ibcast` and `Bcast_init`. Every function has its `PMPI_` name, too.\n"+
		"MPICH's library and that of MPI 5.0's own interface also have the forms for large counts, which end\n"+
		"in `_c`.\n")
	have := map[string]bool{}
	chapters := map[string][]string{}
	var order []string
	for _, f := range all {
		have["MPI_"+f.Name] = true
		if !listed(&f) {
			continue
		}
		if chapters[f.Chapter] == nil {
			order = append(order, f.Chapter)
		}
		chapters[f.Chapter] = append(chapters[f.Chapter], f.Name)
	}
	for _, c := range order {
		fmt.Fprintf(w, "\n## %s\n\n%s\n", c, wrapped(chapters[c]))
	}
	var missing []string
	for name := range protos {
		if !have[name] && !strings.HasSuffix(name, "_c") {
			missing = append(missing, strings.TrimPrefix(name, "MPI_"))
		}
	}
	for _, f := range table.Missing() {
		missing = append(missing, f.Name)
	}
	for _, s := range newer() {
		if name, ok := strings.CutPrefix(s.name, "MPI_"); ok && s.size == 0 && !strings.HasSuffix(name, "_c") {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	missing = slices.Compact(missing)
	fmt.Fprintf(w, "\n## Not implemented\n\nWhat the headers of Open MPI 4.1 and MPICH 4.0, and version 5 of both, declare besides. A program that\n"+
		"calls one ends with its name and \"not implemented by gompi\", or gets `MPI_ERR_UNSUPPORTED_OPERATION` if\n"+
		"its error handler returns.\n\n%s\n", wrapped(missing))
}

// listed reports whether the page names f itself, not a function of which f is a form.
func listed(f *table.Function) bool {
	return f.Form != table.Nonblocking && f.Form != table.Persistent && !strings.HasSuffix(f.Name, "_c")
}

// wrapped returns names in lines of at most 100 columns.
func wrapped(names []string) string {
	var b strings.Builder
	column := 0
	for i, n := range names {
		s := "`" + n + "`"
		if i < len(names)-1 {
			s += ","
		}
		switch {
		case i == 0:
		case column+1+len(s) > 100:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(s)
		column += len(s)
	}
	return b.String()
}
