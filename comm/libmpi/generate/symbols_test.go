package main

import (
	"slices"
	"strings"
	"testing"

	"gompi/comm/internal/mpi/table"
)

// What Open MPI 5 exports is exported, too, once, if gompi does not implement it.
func TestNamesOfNewerLibrariesAreExported(t *testing.T) {
	symbols := withNewer([]symbol{{"MPI_Precv_init", 0}})
	for _, name := range []string{"MPI_Precv_init", "PMPI_Precv_init", "MPI_Pready", "PMPI_Pready"} {
		if n := strings.Count(written(symbols), "int "+name+"(void)"); n != 1 {
			t.Errorf("%s is exported %d times, want 1", name, n)
		}
	}
	for _, f := range table.Functions() {
		if slices.Contains(newer, f.Name) {
			t.Errorf("MPI_%s is implemented: it need not be among the newer ones", f.Name)
		}
	}
}

func written(symbols []symbol) string {
	var b strings.Builder
	writeSymbols(&b, symbols, nil, nil)
	return b.String()
}
