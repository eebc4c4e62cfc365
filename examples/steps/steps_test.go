package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"gompi/comm"
	"gompi/comm/commtest"
	"gompi/comm/ddp"
)

func TestParseRefuses(t *testing.T) {
	for args, want := range map[string]string{
		"":              `models []: want one of cnn, deep, mlp`,
		"mlp cnn":       `models ["mlp" "cnn"]: want one of`,
		"vgg":           `models ["vgg"]: want one of`,
		"-rows 3 mlp":   `-rows 3: want 1 or more, and -write`,
		"-bucket 0 mlp": `want no negative number, and a bucket of 1 or more`,
		"-format x mlp": `-format "x": want csv`,
	} {
		if _, err := parse(strings.Fields(args)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", args, err, want)
		}
	}
}

// written returns the bytes of a problem of few rows.
func written(t *testing.T, model string) (dir string, text []byte) {
	t.Helper()
	dir = t.TempDir()
	file := filepath.Join(dir, model+".problem")
	if err := writeProblem(file, model, 2); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return dir, text
}

func TestAProblemIsReadAsItWasWritten(t *testing.T) {
	dir, text := written(t, "cnn")
	_, again := written(t, "cnn")
	if !bytes.Equal(text, again) {
		t.Error("a problem that is written twice is not the same")
	}
	p, err := readProblem(filepath.Join(dir, "cnn.problem"))
	if err != nil {
		t.Fatal(err)
	}
	numbers := 0
	for _, param := range p.params {
		numbers += len(param.Data)
	}
	if want := 20*26 + 50*(500+1) + 500*801 + 10*501; numbers != want || p.Rows != 2 || len(p.batches) != batchCount {
		t.Errorf("%d numbers, %d rows, %d batches: want %d, 2, %d", numbers, p.Rows, len(p.batches), want, batchCount)
	}
	for _, b := range p.batches {
		for i, class := range b.classes {
			for j, x := range b.inputs.Data[i*p.Inputs:][:classes] {
				if x > b.inputs.Data[i*p.Inputs+int(class)] {
					t.Fatalf("class %d of a sample whose number %d is larger", class, j)
				}
			}
		}
	}
}

func TestAProblemThatIsNoneIsRefused(t *testing.T) {
	_, text := written(t, "cnn")
	for _, tt := range []struct{ name, text, want string }{
		{"empty", "", `first line "": EOF`},
		{"no JSON", "hello\n", `first line "hello`},
		{"no rows", `{"layers":[],"inputs":1,"batches":1}` + "\n", `1 batches of 0 rows of 1 numbers: want`},
		{"a layer that is none", strings.Replace(string(text), `"relu"`, `"gelu"`, 1), `Kind:gelu`},
		{"a layer without size", strings.Replace(string(text), `"k":5`, `"k":0`, 1), "with the sizes it needs"},
		{"a layer beyond memory", strings.Replace(string(text), `"out":500`, `"out":9999999`, 1),
			"want numbers from 0 to 65536"},
		{"cut in a parameter", string(text[:10000]), `parameter "conv3.weight"`},
		{"cut in a batch", string(text[:len(text)-1]), "batch 19: "},
		{"too long", string(text) + "x", "more than its header says"},
	} {
		if _, err := decode(bufio.NewReader(strings.NewReader(tt.text))); err == nil ||
			!strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
	}
	if _, err := readProblem("/nosuch"); !errors.Is(err, os.ErrNotExist) ||
		!strings.Contains(err.Error(), "want a file that steps -write made") {
		t.Errorf("no file: %v", err)
	}
}

// lossesOf returns the ranks' output for -losses.
func lossesOf(t *testing.T, dir string, ranks int) string {
	t.Helper()
	return printedBy(t, ranks, config{dir: dir, model: "cnn", losses: true, bucket: 25 << 20})
}

// printedBy returns rank 0's output.
func printedBy(t *testing.T, ranks int, cfg config) string {
	t.Helper()
	var out strings.Builder
	commtest.Run(t, ranks, func(ctx context.Context, c *comm.Comm) error {
		if c.Rank() != 0 {
			return cfg.train(ctx, c, io.Discard)
		}
		return cfg.train(ctx, c, &out)
	})
	return out.String()
}

func TestLossesAreTheMeanOfAllRanks(t *testing.T) {
	dir, _ := written(t, "cnn")
	alone, both := lossesOf(t, dir, 1), lossesOf(t, dir, 2)
	if again := lossesOf(t, dir, 2); again != both {
		t.Errorf("two runs differ:\n%s\n%s", both, again)
	}
	for _, text := range []string{alone, both} {
		if !regexp.MustCompile(`^(loss \d+ \d\.\d+\n){20}$`).MatchString(text) {
			t.Fatalf("got %q, want %d losses", text, lossSteps)
		}
	}
	// No step has been made before the first loss: it is the mean of the first two batches'.
	p, err := readProblem(filepath.Join(dir, "cnn.problem"))
	if err != nil {
		t.Fatal(err)
	}
	commtest.Run(t, 1, func(ctx context.Context, c *comm.Comm) error {
		tr, err := newTrainer(ctx, c, p, ddp.Options{})
		if err != nil {
			return err
		}
		first, _ := tr.forward()
		tr.step++
		second, _ := tr.forward()
		if got, want := strings.SplitN(both, "\n", 2)[0], fmt.Sprintf("loss 1 %.9g", (first+second)/4); got != want {
			t.Errorf("two ranks: %q, want %q", got, want)
		}
		if got, want := strings.SplitN(alone, "\n", 2)[0], fmt.Sprintf("loss 1 %.9g", first/2); got != want {
			t.Errorf("one rank: %q, want %q", got, want)
		}
		return tr.d.Close(ctx)
	})
}

func TestTimesOfAllPartsAreRows(t *testing.T) {
	dir, _ := written(t, "cnn")
	out := printedBy(t, 2, config{dir: dir, model: "cnn", impl: "me", bucket: 1 << 20, busy: time.Millisecond})
	for _, part := range []string{"forward", "backward", "exposed", "optimiser", "step", "comm"} {
		if !regexp.MustCompile(`(?m)^me,cnn/` + part + `,2,1724320,-?[0-9.]+,`).MatchString(out) {
			t.Errorf("no row of %s in\n%s", part, out)
		}
	}
}

func TestProductsAreDividedByTheLengthsOfParameters(t *testing.T) {
	params := []*ddp.Param{{Data: make([]float32, 60)}, {Data: make([]float32, 1)}, {Data: make([]float32, 39)}}
	b := &busy{counts: make([]int, len(params))}
	b.divide(params, 10)
	if got := fmt.Sprint(b.counts); got != "[6 1 3]" {
		t.Errorf("got %s, want [6 1 3]: 10 in all", got)
	}
	var none *busy
	none.before(2) // does nothing
}
