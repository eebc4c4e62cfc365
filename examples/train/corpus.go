package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// A corpus is text for training and, from other files, for judging.
type corpus struct {
	Source string // its origin, for people to read
	Train  []byte
	Held   []byte
}

// Limits of the text. Memory, and the time to send the text to the other ranks, are bounded for any
// folder, and no single large file is more than a few per cent of either part.
const (
	maxTrain = 8 << 20
	maxHeld  = 64 << 10
	maxFile  = 16 << 10
	minTrain = 4 << 10
	heldOne  = 16 // one in so many files is held out
)

// openCorpus reads the text files under dir. If dir is empty it takes the source of the Go
// installation, or fallback if Go is not installed.
func openCorpus(dir string, fallback fs.FS) (*corpus, error) {
	if dir != "" {
		if _, err := os.Stat(dir); err != nil {
			return nil, err
		}
		return readCorpus(os.DirFS(dir), "files in "+dir, isText)
	}
	if root, version := installation(); root != "" {
		src := filepath.Join(root, "src")
		return readCorpus(os.DirFS(src), fmt.Sprintf("%s (%s)", src, version), isGo)
	}
	return readCorpus(fallback, "this program's own source", isGo)
}

// installation returns the root of the Go installation and its version, or "".
func installation() (root, version string) {
	cmd := exec.Command("go", "env", "GOROOT", "GOVERSION")
	// The go command must not look for another toolchain.
	cmd.Dir, cmd.Env = os.TempDir(), append(os.Environ(), "GOTOOLCHAIN=local")
	out, err := cmd.Output()
	words := strings.Fields(string(out))
	if err != nil || len(words) != 2 {
		return "", ""
	}
	if _, err := os.Stat(filepath.Join(words[0], "src")); err != nil {
		return "", ""
	}
	return words[0], words[1]
}

func isGo(name string, _ []byte) bool {
	return path.Ext(name) == ".go" && !strings.Contains(name, "testdata/")
}

// isText takes every file without a zero byte for text.
func isText(_ string, data []byte) bool { return bytes.IndexByte(data, 0) < 0 }

// readCorpus puts a corpus together from the files that want accepts. The choice of files, their
// order and their part depend on their paths alone.
func readCorpus(files fs.FS, source string, want func(name string, data []byte) bool) (*corpus, error) {
	names, err := listFiles(files)
	if err != nil {
		return nil, err
	}
	c := &corpus{Source: source}
	for _, name := range names {
		part, room := &c.Train, maxTrain
		if hashName(name)/heldOne%heldOne == 0 {
			part, room = &c.Held, maxHeld
		}
		if room -= len(*part); room == 0 || !want(name, nil) {
			continue
		}
		data, err := readBeginning(files, name, min(room, maxFile))
		if err != nil {
			return nil, err
		}
		if want(name, data) {
			*part = append(*part, data...)
		}
	}
	if len(c.Held) == 0 { // few files: hold out the end of the text
		cut := len(c.Train) - len(c.Train)/heldOne
		c.Train, c.Held = c.Train[:cut], c.Train[cut:]
	}
	if len(c.Train) < minTrain {
		return nil, fmt.Errorf("%s hold %d bytes to train on: want at least %d", source, len(c.Train), minTrain)
	}
	return c, nil
}

// listFiles returns the names of all files, ordered by their hash: any first part of the list is a
// fair sample of the whole.
func listFiles(files fs.FS) ([]string, error) {
	var names []string
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			names = append(names, name)
		}
		return err
	})
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(hashName(a), hashName(b)), strings.Compare(a, b))
	})
	return names, err
}

func hashName(name string) uint64 {
	h := fnv.New64a()
	io.WriteString(h, name)
	return h.Sum64()
}

// readBeginning returns the first bytes of a file.
func readBeginning(files fs.FS, name string, limit int) ([]byte, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, int64(limit)))
}

// Digest identifies the text.
func (c *corpus) Digest() string {
	h := sha256.New()
	h.Write(c.Train)
	h.Write(c.Held)
	return fmt.Sprintf("%x", h.Sum(nil)[:6])
}
