package main

import (
	"os"
	"strings"
	"testing"

	"gompi/mpi/internal/table"
)

// The page is written where the headers are installed, so that it may be forgotten.
func TestThePageHasTheFunctionsOfTheTable(t *testing.T) {
	text, err := os.ReadFile("../../../docs/mpi-functions.md")
	if err != nil {
		t.Fatal(err)
	}
	have, missing, _ := strings.Cut(string(text), "## Not implemented")
	for _, f := range table.Functions() {
		if !listed(&f) {
			continue
		}
		name := "`" + f.Name + "`"
		if !strings.Contains(have, name) || strings.Contains(missing, name) {
			t.Errorf("%s is not where it belongs: run go run ./mpi/libmpi/generate docs", name)
		}
	}
}
