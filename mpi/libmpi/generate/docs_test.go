package main

import (
	"bytes"
	"os"
	"testing"
)

func TestThePageHasTheFunctionsOfTheTable(t *testing.T) {
	page, err := os.ReadFile("../../../docs/mpi-functions.md")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(page, docs()) {
		t.Error("docs/mpi-functions.md is not as functions.txt: run go generate ./mpi/internal")
	}
}
