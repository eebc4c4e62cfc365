package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"gompi/bench/internal/result"
	"gompi/cudaops/cudatest"
	"gompi/internal/env"
	"gompi/internal/mem"
	"gompi/internal/stress"
)

func TestMain(m *testing.M) {
	// Tests start this program as gompi-bench, too.
	if len(os.Args) > 1 && (os.Args[1] == "run" || os.Args[1] == rankCommand) {
		main()
	}
	cudatest.Use()
	os.Exit(m.Run())
}

func TestACommandIsWanted(t *testing.T) {
	for args, want := range map[string]string{
		"-h": "compare", "-version": "gompi-bench 0.", "": `command "": want one of run, compare,`,
		"latency":   `command "latency": want one of run,`,
		"launch -h": "usage: gompi-bench launch", "ddp -version": "gompi-bench ddp 0.",
	} {
		var out strings.Builder
		status := dispatch(strings.Fields(args), &out, &out)
		if !strings.Contains(out.String(), want) || (status != 0) != strings.Contains(want, "want") {
			t.Errorf("%q: status %d, %q; want %q", args, status, out.String(), want)
		}
	}
}

func TestParseTakesOperationsBetweenFlags(t *testing.T) {
	cfg, err := parseRun([]string{"latency", "-sizes", "8,1K,1M", "allreduce", "--type=bfloat16", "-redop", "max",
		"-inplace", "-check=false", "-format", "csv", "bcast"})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"latency", "allreduce", "bcast"}; !slices.Equal(cfg.Ops, want) {
		t.Errorf("operations %v, want %v", cfg.Ops, want)
	}
	if want := []int{8, 1024, 1 << 20}; !slices.Equal(cfg.Sizes, want) {
		t.Errorf("sizes %v, want %v", cfg.Sizes, want)
	}
	if cfg.Type != mem.BF16 || cfg.Redop != mem.Max || !cfg.InPlace || cfg.Check || cfg.form != "csv" {
		t.Errorf("got %+v", cfg)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"-format xml bcast", `-format "xml": want table or csv`},
		{"-type float33 bcast", `unknown element type "float33"`},
		{"-redop plus bcast", `unknown operator "plus"`},
		{"-sizes 8,x bcast", `-sizes "8,x": size "x"`},
		{"-size 8 bcast", "did you mean -sizes?"},
	} {
		_, err := parseRun(strings.Fields(tt.args))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.args, err, tt.want)
		}
	}
}

// runAlone runs the command as the only rank of a job.
func runAlone(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	t.Setenv(env.Boot, "alone")
	var out, errs strings.Builder
	status = dispatch(append([]string{"run"}, args...), &out, &errs)
	return status, out.String(), errs.String()
}

func TestStdoutHoldsOnlyTheRows(t *testing.T) {
	status, stdout, stderr := runAlone(t, "-format", "csv", "-sizes", "8,64", "allreduce", "barrier")
	rows, err := result.ReadCSV([]byte(stdout))
	if status != 0 || stderr != "" || err != nil || len(rows) != 3 {
		t.Fatalf("status %d, stderr %q, %v rows, error %v; want three rows\n%s", status, stderr, len(rows), err, stdout)
	}
	if r := rows[1]; r.Impl != "gompi" || r.Op != "allreduce" || r.NP != 1 || r.Bytes != 64 {
		t.Errorf("row %+v, want gompi's allreduce of 64 bytes", r)
	}
}

func TestVectorsInCUDAMemory(t *testing.T) {
	stress.Long(t, "it wants tests that are built with cgo")
	cudatest.Need(t)
	status, stdout, stderr := runAlone(t, "-mem", "cuda", "-format", "csv", "-sizes", "4096", "allreduce", "allgather",
		"ddp-resnet18")
	rows, err := result.ReadCSV([]byte(stdout))
	if status != 0 || stderr != "" || err != nil || len(rows) != 3 {
		t.Fatalf("status %d, stderr %q, %d rows, error %v; want three rows", status, stderr, len(rows), err)
	}
	if r := rows[2]; r.Op != "ddp-resnet18" || r.Bytes != 4*11689512 {
		t.Errorf("row %+v, want ResNet-18's 11689512 gradients", r)
	}
}

func TestStatusReportsWrongArguments(t *testing.T) {
	for _, tt := range []struct {
		args   []string
		status int
		want   string // in the output
	}{
		{[]string{"-h"}, 0, "usage: gompirun"},
		{[]string{"-version"}, 0, "gompi-bench run 0."},
		{nil, 2, "no operation: want some of"},
		{[]string{"-nosuch"}, 2, "gompi-bench run: unknown flag -nosuch: -h lists the flags\n"},
		{[]string{"allredcue"}, 2, `operation "allredcue": want one of`},
		{[]string{"-mem", "gpu", "bcast"}, 2, `-mem "gpu": want host or cuda`},
		{[]string{"latency"}, 2, "latency with 1 rank: want at least 2"},
		{[]string{"-sizes", "6", "bcast"}, 2, "size 6: want a multiple of the 4 bytes of float32"},
	} {
		status, stdout, stderr := runAlone(t, tt.args...)
		if status != tt.status || !strings.Contains(stdout+stderr, tt.want) {
			t.Errorf("%v: status %d, %q; want %d and %q", tt.args, status, stdout+stderr, tt.status, tt.want)
		}
	}
}
