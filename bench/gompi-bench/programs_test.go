package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// programHPCC is a launcher in place of HPCC: on gompi with 4 ranks it fails, and otherwise it adds
// the rates in its name to its file.
const programHPCC = `
[ "$1" = --version ] && { echo 'mpirun 5.0.11'; exit 0; }
[ "$2" = 4 ] && { echo "rank 1 died" >&2; exit 9; }
echo "Success=1
HPL_Tflops=RATE
PTRANS_GBs=0.5
MPIRandomAccess_GUPs=1.5e-03
MPIFFT_Gflops=2" >>hpccoutf.txt
`

// Times are better below, rates above.
func TestProgramsAreTimedAndTheirFiguresRead(t *testing.T) {
	dir := t.TempDir()
	gompirun := script(t, "gompirun", strings.Replace(programHPCC, "RATE", "0.003", 1))
	for _, name := range []string{"openmpi/bin/mpirun", "openmpi/bin/mpicc", "mpicc.openmpi", "hpcc"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		rate := strings.NewReplacer("RATE", "0.002", `"$2" = 4`, "0 = 1").Replace(programHPCC)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+rate), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	csv := filepath.Join(dir, "raw.csv")
	out := called(t, 0, "programs", "-gompirun", gompirun, "-venvs", dir, "-peers", "gompi-openmpi,openmpi,mpich",
		"-np", "2,4", "-rounds", "2", "-csv", csv, "hpcc")
	has(t, out, "- hpcc: mpich: not installed", `\| HPL +\| Gflop/s \| +2 \| +3.00 \| +2.00 \| +1.50 \|`,
		`\| HPL +\| Gflop/s \| +4 \| +missing \| +2.00 \| +missing \|`,
		`\| RandomAccess \| Mup/s +\| +2 \| +1.50 \| +1.50 \| +1.00 \|`, `\| command +\| s +\| +2 \|`,
		"- gompi-openmpi, hpcc, np=4, round 2: exit status 9: rank 1 died\n",
		`\|  np \| programs \| lost \| .*\n.*\n\|   2 \| +1 \| .* \| +1.11 \|\n\|   4 \| +0 \|`)
	if raw := read(t, csv); strings.Count(raw, ",gompi-openmpi,hpcc/PTRANS,2,0,500.000,") != 2 {
		t.Errorf("rows:\n%s", raw)
	}
}

func TestAProgramIsReadOrRefused(t *testing.T) {
	cg := cg("cg", "", "8", "1")
	if got, err := cg.read("solved, residual 1e-9\nseconds=0.25\n"); err != nil || got[0] != 0.25 {
		t.Errorf("got %v, %v, want 0.25", got, err)
	}
	for text, want := range map[string]string{
		"seconds=0.25\n":                    `no "solved, residual" in its output: want it`,
		"solved, residual 1\n":              "no solve in its output",
		"solved, residual 1\nseconds=0.0\n": `solve is "0.0": want a number above 0`,
	} {
		if _, err := cg.read(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	for np, want := range map[int]string{2: "\n1            P\n2            Q\n",
		4: "\n2            P\n2            Q\n", 6: "\n2            P\n3            Q\n",
		1: "\n1            P\n1            Q\n"} {
		if text := hpccInput(np)[0].text; !strings.Contains(text, want) {
			t.Errorf("%d processes: no %q in\n%s", np, want, text)
		}
	}
}
