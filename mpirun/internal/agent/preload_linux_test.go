package agent

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"gompi/mpirun/internal/ctl"
)

// A file of the right size in the cache is not taken for the program.
func TestPreloadComparesContents(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte("the program")))
	path, err := cachePath(sum, "prog")
	if err != nil {
		t.Fatal(err)
	}
	for held, known := range map[string]bool{"the program": true, "the tampere": false} {
		if err := os.WriteFile(path, []byte(held), 0o700); err != nil {
			t.Fatal(err)
		}
		program := ctl.Program{Argv: []string{"prog"}, Sum: sum, Size: int64(len(held))}
		a := &agent{launch: &ctl.Launch{Remote: true, Ranks: []ctl.Rank{{}}, Programs: []ctl.Program{program}}}
		if m, err := a.nextMissing(); err != nil || (m == nil) != known {
			t.Errorf("a cache that holds %q: missing %v, %v; want that it is known: %v", held, m, err, known)
		}
	}
}

func TestPreloadRefusesAFolderThatOthersCanWrite(t *testing.T) {
	cache, tmp := t.TempDir(), t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("TMPDIR", tmp)
	open := func(dir string) {
		own := filepath.Join(dir, "gompi-"+strconv.Itoa(os.Getuid()))
		if err := os.MkdirAll(own, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(own, 0o770); err != nil {
			t.Fatal(err)
		}
	}
	open(cache)
	if path, err := cachePath("5", "prog"); err != nil || !strings.HasPrefix(path, tmp) {
		t.Errorf("%q, %v; want one in %s", path, err, tmp)
	}
	open(tmp)
	if path, err := cachePath("5", "prog"); err == nil || strings.Count(err.Error(), "others can write ") != 2 {
		t.Errorf("%q, %v; want two refusals", path, err)
	}
}
