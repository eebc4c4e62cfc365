package atomicfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func text(name, s string) File {
	return File{name, func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}}
}

// visible returns the files of the folder whose names do not begin with a dot.
func visible(t *testing.T, dir string) (names []string) {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names
}

// Were the process killed within the last Write, no file would be there.
func TestNoFileIsSeenBeforeAllAreWhole(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "folder")
	last := File{"b", func(w io.Writer) error {
		io.WriteString(w, "half")
		if seen := visible(t, dir); len(seen) > 0 {
			t.Errorf("%q are there while the last file is written", seen)
		}
		io.WriteString(w, " and half") // a bufio.Writer keeps its error for Flush
		return nil
	}}
	if err := Write(dir, text("a", "one"), last); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a": "one", "b": "half and half"} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s is %q (%v), want %q", name, got, err, want)
		}
	}
	if all, _ := os.ReadDir(dir); len(all) != 2 {
		t.Errorf("%d files are there, want 2", len(all))
	}
}

// A folder in the way of the second file: the first has been renamed, nothing else is left.
func TestAnErrorLeavesNoOtherNames(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "b", "full"), 0o755); err != nil {
		t.Fatal(err)
	}
	err := Write(dir, text("a", "1"), text("b", "2"), text("c", "3"))
	if err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "b")) {
		t.Errorf("error %v, want one that names b", err)
	}
	all, _ := os.ReadDir(dir)
	if got := visible(t, dir); !slices.Equal(got, []string{"a", "b"}) || len(all) != 2 {
		t.Errorf("%q of %d files are there, want a and b", got, len(all))
	}
	if err := Write(filepath.Join(dir, "a", "x"), text("f", "")); err == nil {
		t.Error("a folder in a file is made")
	}
}

func TestAFileThatIsNotWrittenWholeLeavesTheOldOne(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	write := func(s string, err error) error {
		return Replace(path, func(w io.Writer) error {
			io.WriteString(w, s)
			return err
		})
	}
	if err := write("old", nil); err != nil {
		t.Fatal(err)
	}
	reason := errors.New("no more numbers")
	if err := write("ne", reason); !errors.Is(err, reason) {
		t.Errorf("error %v, want %v", err, reason)
	}
	got, err := os.ReadFile(path)
	all, _ := os.ReadDir(dir)
	if string(got) != "old" || err != nil || len(all) != 1 {
		t.Errorf("it is %q (%v), among %d files: want the old one, alone", got, err, len(all))
	}
	if err := Replace(filepath.Join(dir, "missing", "f"), text("", "").Write); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v in a folder that is not there, want %v", err, fs.ErrNotExist)
	}
}

func TestAFileOfTheWorkingFolderNeedsNoFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := Replace("f", text("", "here").Write); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile("f"); err != nil || string(got) != "here" {
		t.Errorf("it is %q (%v), want here", got, err)
	}
}

func TestCheckFindsBeforeWorkWhatWouldFailAfterIt(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct {
		path string
		want error
	}{
		{"", nil},
		{"/dev/null", nil},
		{filepath.Join(dir, "new"), nil},
		{dir, syscall.EISDIR},
		{filepath.Join(dir, "missing", "new"), fs.ErrNotExist},
	} {
		err := Check(tt.path)
		if !errors.Is(err, tt.want) || err != nil && !strings.Contains(err.Error(), " "+tt.path+": ") {
			t.Errorf("%q: %v, want %v", tt.path, err, tt.want)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left in the folder: %v, %v", left, err)
	}
}

func TestAFileKeepsItsPermissionsAndANewOneHasThoseOfTheUmask(t *testing.T) {
	old := syscall.Umask(0o027)
	defer syscall.Umask(old)
	path := filepath.Join(t.TempDir(), "f")
	for _, want := range []fs.FileMode{0o640, 0o600} {
		if err := Replace(path, text("", "1").Write); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("its mode is %v (%v), want %v", info.Mode(), err, want)
		}
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheFileThatALinkLeadsToIsReplaced(t *testing.T) {
	dir := t.TempDir()
	for link, to := range map[string]string{"link": "second", "second": filepath.Join(dir, "sub", "file"),
		"loop": "loop"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{"new", "newer"} {
		if err := Replace(filepath.Join(dir, "link"), text("", content).Write); err != nil {
			t.Fatal(err)
		}
		info, err := os.Lstat(filepath.Join(dir, "sub", "file"))
		got, _ := os.ReadFile(filepath.Join(dir, "link"))
		if err != nil || !info.Mode().IsRegular() || string(got) != content {
			t.Errorf("the file is %v (%v), and the link reads %q: want %q", info, err, got, content)
		}
	}
	if err := Replace(filepath.Join(dir, "loop"), text("", "").Write); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("a link to itself: %v, want ELOOP", err)
	}
	if err := Replace("/dev/null", text("", "nothing").Write); err != nil {
		t.Error(err)
	}
	if info, err := os.Lstat("/dev/null"); err != nil || info.Mode()&fs.ModeCharDevice == 0 {
		t.Fatalf("/dev/null is %v (%v)", info, err)
	}
}

// The next writer removes the copy of a writer that was killed, but neither the copy of a running
// writer nor a file with a similar name.
func TestWhatAKillLeavesIsRemoved(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{".f.0123456789abcdef.partial", ".f.swp", ".g.0123456789abcdef.partial"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "f")
	err := Replace(path, func(w io.Writer) error {
		return errors.Join(Replace(path, text("", "inner").Write), text("", "outer").Write(w))
	})
	if err != nil {
		t.Error(err)
	}
	var left []string
	all, _ := os.ReadDir(dir)
	for _, e := range all {
		left = append(left, e.Name())
	}
	got, _ := os.ReadFile(path)
	if want := []string{".f.swp", ".g.0123456789abcdef.partial", "f"}; !slices.Equal(left, want) ||
		string(got) != "outer" {
		t.Errorf("%q are left, want %q; f is %q", left, want, got)
	}
}
