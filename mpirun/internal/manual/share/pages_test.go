package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gompi/mpirun/internal/manual"
)

func TestManualPagesAreWithoutWarnings(t *testing.T) {
	if _, err := exec.LookPath("groff"); err != nil {
		t.Skip("needs groff")
	}
	all := manual.Files()
	all["man/man1/gompi-bench.1"], all["man/man5/gompi-hostfile.5"] = pages(t)
	gompicc, err := filesWith("../../../../mpi/libmpi/gompicc")
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(all, gompicc)
	for name, text := range all {
		if !strings.HasPrefix(name, "man/") || strings.HasPrefix(text, ".so ") {
			continue
		}
		cmd := exec.Command("groff", "-man", "-Tutf8", "-ww", "-P-cbou") // no overstriking
		cmd.Stdin = strings.NewReader(text)
		var warnings strings.Builder
		cmd.Stderr = &warnings
		out, err := cmd.Output()
		if err != nil || warnings.Len() > 0 || !strings.Contains(string(out), "SYNOPSIS") ||
			!strings.Contains(string(out), "DESCRIPTION") {
			t.Errorf("%s: %v: %s", name, err, &warnings)
		}
	}
}

// pages returns the pages of a gompi-bench with two commands, and of hostfiles.
func pages(t *testing.T) (bench, hostfile string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "gompi-bench")
	err := os.WriteFile(program, []byte(`#!/bin/sh
case $1 in
-h) printf 'usage: gompi-bench COMMAND\n\n  run      time operations\n  profile  measure processors\n' ;;
run) printf 'usage: gompi-bench run [flags] OP...\n\nTimes operations.\nOP is one.\n\n      --sizes sizes   sizes to measure,\n                      as 8,1K (default 8,16)\n      --check         check all\n' ;;
profile) printf 'usage: gompi-bench profile\n\nMeasures.\n' ;;
esac
`), 0o755)
	if err != nil {
		t.Fatal(err)
	}
	bench, err = benchPage(program)
	if err != nil {
		t.Fatal(err)
	}
	hostfile, err = hostfilePage()
	if err != nil {
		t.Fatal(err)
	}
	return bench, hostfile
}

func TestPagesOfGompiBenchAndHostfiles(t *testing.T) {
	bench, hostfile := pages(t)
	for _, want := range []string{
		"gompi\\-bench run [flags] OP...\ngompi\\-bench profile\n",
		".SH RUN\n.PP\nTimes operations. OP is one.\n.PP\n.nf\n      \\-\\-sizes sizes   sizes to measure,\\:\n",
		"\n      \\-\\-check         check all\n.fi\n.SH PROFILE\n.PP\nMeasures.\n",
	} {
		if !strings.Contains(bench, want) {
			t.Errorf("%q is not in\n%s", want, bench)
		}
	}
	for _, want := range []string{"gompirun reads lists of hosts", "\nitem    = [ \"^\" ] [ user \"@\" ] host",
		"max_slots=8"} {
		if !strings.Contains(hostfile, want) {
			t.Errorf("%q is not in\n%s", want, hostfile)
		}
	}
}
