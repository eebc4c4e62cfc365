package main

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// textFolder returns n files of size bytes each, every file of one letter.
func textFolder(n, size int) fstest.MapFS {
	fsys := fstest.MapFS{}
	for i := range n {
		data := bytes.Repeat([]byte{'a' + byte(i%26)}, size)
		fsys[fmt.Sprintf("d%d/file%d.go", i%7, i)] = &fstest.MapFile{Data: data}
	}
	return fsys
}

func TestFilesAreSplitByPathAndBounded(t *testing.T) {
	c, err := readCorpus(textFolder(1600, 10000), "test", isGo)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Train) != maxTrain || len(c.Held) != maxHeld {
		t.Errorf("%d bytes to train on, %d held out: want %d and %d", len(c.Train), len(c.Held), maxTrain, maxHeld)
	}
	again, err := readCorpus(textFolder(1600, 10000), "test", isGo)
	if err != nil || again.Digest() != c.Digest() {
		t.Errorf("the same folder gives %s and then %s, %v", c.Digest(), again.Digest(), err)
	}
}

func TestNoFileIsInBothParts(t *testing.T) {
	fsys := fstest.MapFS{}
	for i := range 300 {
		line := fmt.Sprintf("<%d>", i)
		fsys[fmt.Sprintf("f%d.go", i)] = &fstest.MapFile{Data: []byte(strings.Repeat(line, 40))}
	}
	c, err := readCorpus(fsys, "test", isGo)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		line := fmt.Appendf(nil, "<%d>", i)
		train, held := bytes.Contains(c.Train, line), bytes.Contains(c.Held, line)
		if train == held {
			t.Errorf("file %d: to train on %v, held out %v", i, train, held)
		}
	}
	if len(c.Held) < len(c.Train)/40 || len(c.Held) > len(c.Train)/5 {
		t.Errorf("%d bytes held out of %d: want about one in %d", len(c.Held), len(c.Train), heldOne)
	}
}

func TestOnlyWantedFilesAreRead(t *testing.T) {
	fsys := fstest.MapFS{
		"a.go":            {Data: bytes.Repeat([]byte("a"), 9000)},
		"b.txt":           {Data: bytes.Repeat([]byte("b"), 9000)},
		"testdata/c.go":   {Data: bytes.Repeat([]byte("c"), 9000)},
		"x/testdata/d.go": {Data: bytes.Repeat([]byte("d"), 9000)},
		"e.bin":           {Data: append(bytes.Repeat([]byte("e"), 9000), 0)},
	}
	for _, tc := range []struct {
		name string
		want func(string, []byte) bool
		in   string
	}{{"go", isGo, "a"}, {"text", isText, "abcd"}} {
		c, err := readCorpus(fsys, "test", tc.want)
		if err != nil {
			t.Fatal(err)
		}
		for _, letter := range "abcde" {
			got := bytes.ContainsRune(append(c.Train, c.Held...), letter)
			if want := strings.ContainsRune(tc.in, letter); got != want {
				t.Errorf("%s: file of %c read: %v, want %v", tc.name, letter, got, want)
			}
		}
	}
}

func TestSingleFileIsDivided(t *testing.T) {
	c, err := readCorpus(textFolder(1, 16000), "test", isGo)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Train) != 15000 || len(c.Held) != 1000 {
		t.Errorf("%d bytes to train on, %d held out: want 15000 and 1000", len(c.Train), len(c.Held))
	}
}

func TestFolderWithoutTextIsAnError(t *testing.T) {
	empty := t.TempDir()
	if err := os.WriteFile(filepath.Join(empty, "short"), []byte("too little"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{empty, filepath.Join(empty, "missing")} {
		if c, err := openCorpus(dir, nil); err == nil || !strings.Contains(err.Error(), dir) {
			t.Errorf("Open(%s) = %v, %v: want an error that names it", dir, c, err)
		}
	}
}

func TestFallbackServesWhereGoIsNotInstalled(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	c, err := openCorpus("", textFolder(50, 1000))
	if err != nil {
		t.Fatal(err)
	}
	if c.Source != "this program's own source" {
		t.Errorf("source is %q", c.Source)
	}
}

func TestBaselinesOfTextsThatAreKnown(t *testing.T) {
	random := make([]byte, 1<<16)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range random {
		random[i] = byte(rng.Uint32())
	}
	for _, tc := range []struct {
		name           string
		text           []byte
		unigram, flate float64
	}{
		{"one letter", bytes.Repeat([]byte("a"), 1<<16), 0, 0.01},
		{"two letters", bytes.Repeat([]byte("ab"), 1<<15), 1, 0.01},
		{"random bytes", random, 8, 8},
	} {
		if got := unigramLoss(tc.text); math.Abs(got-tc.unigram) > 0.01 {
			t.Errorf("%s: unigram %.3f, want %.3f", tc.name, got, tc.unigram)
		}
		if got := flateLoss(tc.text); math.Abs(got-tc.flate) > 0.01 {
			t.Errorf("%s: flate %.3f, want %.3f", tc.name, got, tc.flate)
		}
	}
}
