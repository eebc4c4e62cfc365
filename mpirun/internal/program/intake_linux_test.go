package program

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gompi/mpirun/internal/ctl"
)

// A file of the right size in the cache is not taken for the program.
func TestPreloadComparesContents(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte("the program")))
	path := cachePaths(sum, "prog")[0]
	if err := makeOwnFolder(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	for held, known := range map[string]bool{"the program": true, "the tampere": false} {
		if err := os.WriteFile(path, []byte(held), 0o700); err != nil {
			t.Fatal(err)
		}
		program := ctl.Program{Argv: []string{"prog"}, Sum: sum, Size: int64(len(held))}
		in := &intake{}
		in.Find(&ctl.Launch{Remote: true, Ranks: []ctl.Rank{{}}, Programs: []ctl.Program{program}}, "/")
		if m := in.nextMissing(); (m == nil) != known {
			t.Errorf("a cache that holds %q: missing %v; want that it is known: %v", held, m, known)
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
	begin := func() (*intake, error) {
		in := &intake{item: item{File: ctl.File{Name: "prog", Mode: 0o700}, program: true,
			places: cachePaths("5", "prog")}}
		_, err := in.begin()
		return in, err
	}
	open(cache)
	in, err := begin()
	if err != nil || !strings.HasPrefix(in.temporary, tmp) {
		t.Errorf("%q, %v; want one in %s", in.temporary, err, tmp)
	}
	in.Abandon()
	open(tmp)
	if in, err := begin(); err == nil || strings.Count(err.Error(), "others can write ") != 2 {
		t.Errorf("%q, %v; want two refusals", in.temporary, err)
	}
}

// A program that cannot be written in one folder is asked for again, for the next.
func TestPreloadContinuesToTheNextFolder(t *testing.T) {
	cache, tmp := t.TempDir(), t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("TMPDIR", tmp)
	text := "the program"
	program := ctl.Program{Argv: []string{"prog"}, Sum: fmt.Sprintf("%x", sha256.Sum256([]byte(text))),
		Size: int64(len(text))}
	in := &intake{}
	in.Find(&ctl.Launch{Remote: true, Ranks: []ctl.Rank{{}}, Programs: []ctl.Program{program}}, "/")
	first := ctl.Want{Item: 0}
	if want, err := in.Next(); err != nil || want == nil || *want != first {
		t.Fatalf("%+v, %v; want %+v", want, err, first)
	}
	in.file.Close() // so that it cannot be written
	if want, err := in.Take([]byte(text[:4])); err != nil || want == nil || *want != first {
		t.Fatalf("%+v, %v; want %+v again", want, err, first)
	}
	if want, err := in.Take([]byte(text)); err != nil || want != nil {
		t.Fatalf("%+v, %v; want that all has come", want, err)
	}
	got, err := os.ReadFile(in.Path(0))
	if !strings.HasPrefix(in.Path(0), tmp) || err != nil || string(got) != text {
		t.Errorf("%s: %q, %v; want %q in %s", in.Path(0), got, err, text, tmp)
	}
	if left, _ := filepath.Glob(filepath.Join(cache, "*/*/.*")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// fetching returns the intake of a host that is to have files in a folder.
func fetching(t *testing.T, dir string, contents ...string) *intake {
	t.Helper()
	l := &ctl.Launch{Remote: true, Ranks: []ctl.Rank{{}}, Programs: []ctl.Program{{Argv: []string{"prog"}, Wdir: dir}}}
	for i, c := range contents {
		l.Files = append(l.Files, ctl.File{Name: fmt.Sprint("file", i),
			Sum: fmt.Sprintf("%x", sha256.Sum256([]byte(c))), Size: int64(len(c)), Mode: 0o600})
	}
	in := &intake{}
	in.Find(l, "/")
	return in
}

// A file found right, or fetched, is not read again for later files.
func TestPreloadLooksAtEachFileOnce(t *testing.T) {
	dir := t.TempDir()
	in := fetching(t, dir, "first", "second", "third")
	first := filepath.Join(dir, "file0")
	if err := os.WriteFile(first, []byte("first"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{"second", "third"} {
		if want, err := in.Next(); err != nil || want == nil {
			t.Fatalf("%v, %v; want that the file of %q is missing", want, err, content)
		}
		if err := os.WriteFile(first, []byte("other"), 0o600); err != nil { // as if it were read again
			t.Fatal(err)
		}
		if more, err := in.Take([]byte(content)); err != nil || more != nil {
			t.Fatalf("%v, %v; want that %q is all of a file", more, err, content)
		}
	}
	if want, err := in.Next(); err != nil || want != nil {
		t.Errorf("%v, %v; want that nothing is missing", want, err)
	}
	for i, want := range []string{"other", "second", "third"} {
		if got, err := os.ReadFile(filepath.Join(dir, fmt.Sprint("file", i))); err != nil || string(got) != want {
			t.Errorf("file %d holds %q, %v; want %q", i, got, err, want)
		}
	}
}

// A file on its way has a name that no file has, and is gone when the agent is.
func TestPreloadTakesNoFilesName(t *testing.T) {
	dir := t.TempDir()
	own := filepath.Join(dir, "file0."+strconv.Itoa(os.Getpid()))
	if err := os.WriteFile(own, []byte("own"), 0o600); err != nil {
		t.Fatal(err)
	}
	in := fetching(t, dir, "content")
	if want, err := in.Next(); err != nil || want == nil {
		t.Fatalf("%v, %v; want that the file is missing", want, err)
	}
	if more, err := in.Take([]byte("cont")); err != nil || more == nil || more.Offset != 4 {
		t.Fatalf("%v, %v; want that more is to come", more, err)
	}
	in.Abandon()
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	hidden, _ := filepath.Glob(filepath.Join(dir, ".*"))
	if got, _ := os.ReadFile(own); err != nil || len(names) != 1 || len(hidden) > 0 || string(got) != "own" {
		t.Errorf("%q, %q, %q, %v; want the file alone that was there", names, hidden, got, err)
	}
}

// A FIFO in a file's place is replaced, and not read.
func TestPreloadDoesNotReadPipes(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "file0"), 0o600); err != nil {
		t.Fatal(err)
	}
	if m := fetching(t, dir, "content").nextMissing(); m == nil {
		t.Error("a FIFO is taken for the file")
	}
}

// A job marks the programs in the cache that it uses, and touches nothing else.
func TestUsedProgramsAreMarkedInTheCacheAlone(t *testing.T) {
	dir := t.TempDir()
	long := time.Now().Add(-40 * 24 * time.Hour)
	cached, other := filepath.Join(dir, cacheName(), "build", "prog"), filepath.Join(dir, "bin", "build", "prog")
	for path, marked := range map[string]bool{cached: true, other: false} {
		folder := filepath.Dir(path)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(folder, long, long); err != nil {
			t.Fatal(err)
		}
		markUsed(path)
		if st, err := os.Stat(folder); err != nil || st.ModTime().Equal(long) == marked {
			t.Errorf("%s: %v, from %v, %v; want it marked: %v", path, st.ModTime(), long, err, marked)
		}
	}
}
