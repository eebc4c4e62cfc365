package main

import (
	"strings"
	"testing"
)

// What Open MPI 5 and MPICH 5 export is exported, too, once, if gompi does not implement it.
func TestNamesOfNewerLibrariesAreExported(t *testing.T) {
	text := written(withNewer([]symbol{{"MPI_Precv_init", 0}}))
	for _, want := range []string{
		"int MPI_Precv_init(void)", "int PMPI_Precv_init(void)", "int MPI_Pready(void)",
		"int PMPIX_Stream_create(void)",
		"int MPIR_Err_return_group(void)", "char MPIR_fortran_true[4]",
	} {
		if n := strings.Count(text, want); n != 1 {
			t.Errorf("%s is exported %d times, want 1", want, n)
		}
	}
}

func written(symbols []symbol) string {
	var b strings.Builder
	writeSymbols(&b, symbols, nil, nil)
	return b.String()
}
