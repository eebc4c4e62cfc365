package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// docs returns the page of the functions that gompi has, and of missing ones.
func docs() []byte {
	var b bytes.Buffer
	b.WriteString(docsBeginning)
	chapters := map[string][]string{}
	var order []string
	for _, f := range Functions() {
		if f.Form == Nonblocking || f.Form == Persistent || strings.HasSuffix(f.Name, "_c") {
			continue // another function's row stands for it
		}
		if chapters[f.Chapter] == nil {
			order = append(order, f.Chapter)
		}
		chapters[f.Chapter] = append(chapters[f.Chapter], f.Name)
	}
	for _, c := range order {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", c, wrapped(chapters[c]))
	}
	var missing []string
	for _, f := range Missing() {
		missing = append(missing, f.Name)
	}
	slices.Sort(missing)
	fmt.Fprintf(&b, docsMissing, wrapped(missing))
	return b.Bytes()
}

const docsBeginning = `# The functions of MPI that gompi has

<!-- Written by go generate ./mpi/internal: change functions.txt, not this page. -->

    nm -D ./a.out | grep ' U MPI_'    # the functions that a program calls
    gompirun -np 4 ./a.out

[MPI programs on gompi](mpi.md) call these functions. A collective stands for its three forms:
` + "`Bcast`, `Ibcast` and `Bcast_init`. Every function has its `PMPI_`" + ` name, too.
The libraries of MPICH's and MPI 5.0's interfaces also have the forms for large counts, which end in
` + "`_c`.\n"

const docsMissing = `
## Not implemented

The headers of Open MPI 4.1 and MPICH 4.0, and version 5 of both, declare these, too. A program that
calls one ends with its name and "not implemented by gompi", or gets
` + "`MPI_ERR_UNSUPPORTED_OPERATION`" + ` if its error handler returns.

%s
`

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
