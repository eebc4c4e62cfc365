package machine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestKnownProcessorsHaveProfiles(t *testing.T) {
	for _, test := range []struct {
		id   id
		want string
	}{
		{id{"GenuineIntel", 6, 143, 2048, true}, "shm.read=32k;shm.read.below=8m"},
		{id{"GenuineIntel", 6, 85, 1024, false}, "shm.read=never"}, // not measured
		{id{"AuthenticAMD", 26, 2, 1024, true}, "shm.read=never"},
		{id{}, "shm.read=never"},
	} {
		if got := profile(test.id); got.Reads.String() != test.want || got.File != "" {
			t.Errorf("%v: %+v, want %s", test.id, got, test.want)
		}
	}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	for _, r := range []Range{{}, {1, 0}, {65536, 0}, {100_000, 1 << 30}, {32 << 10, 8 << 20}} {
		if got, err := parse("# a comment; shm.read=1\n" + r.String() + "\n"); err != nil || got != r {
			t.Errorf("%v: read as %v, %v", r, got, err)
		}
	}
	if got, err := parse("\n shm.read = 4K ;\nshm.read.below= 2m \n"); err != nil || got != (Range{4096, 2 << 20}) {
		t.Errorf("with spaces: %v, %v", got, err)
	}
	for _, wrong := range []string{"shm.read=many", "shm.read=", "shm.read=0", "shm.read", "shm.large=1m", "shm.read=4k shm.read.below=2m", "shm.read=99999999999g"} {
		name, value, _ := strings.Cut(wrong, "=")
		if _, err := parse(wrong); err == nil || !strings.Contains(err.Error(), `"`+value) && !strings.Contains(err.Error(), `"`+name) {
			t.Errorf("%q: error %v: want one that quotes it", wrong, err)
		}
	}
}

// What is kept is read again, on this kind of machine alone.
func TestAProfileIsKept(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	built, err := Read("")
	if err != nil || built.File != "" {
		t.Fatalf("%+v, %v: want a built-in profile", built, err)
	}
	want := Range{16 << 10, 1 << 20}
	file, err := Keep(want)
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Dir(file) != filepath.Join(cache, "gompi", "profile") {
		t.Errorf("kept in %q", file)
	}
	if p, err := Read(""); err != nil || p.Reads != want || p.File != file || p.Processor != built.Processor {
		t.Errorf("%+v, %v: want what was kept", p, err)
	}
	spoil := func(what string, do func() error) {
		if err := do(); err != nil {
			t.Fatal(err)
		}
		if p, err := Read(""); err == nil || !strings.Contains(err.Error(), file) || p.File != file || p.Reads != built.Reads {
			t.Errorf("%s: %+v, %v: want an error that names it, and the built-in profile", what, p, err)
		}
	}
	spoil("a file with something else", func() error { return os.WriteFile(file, []byte("a=1"), 0o644) })
	spoil("a long file", func() error { return os.WriteFile(file, make([]byte, most+1), 0o644) })
	spoil("a folder", func() error { os.Remove(file); return os.Mkdir(file, 0o755) })
	if p, err := Read(file + ".not"); err == nil || p.Reads != built.Reads {
		t.Errorf("a file that is missing and was named: %+v, %v: want an error, and the built-in profile", p, err)
	}
	if p, err := Read(None); err != nil || !p.Reads.Empty() || p.Processor == "" {
		t.Errorf("none: %+v, %v", p, err)
	}
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "")
	if p, err := Read(""); err != nil || p != built {
		t.Errorf("without a home: %+v, %v", p, err)
	}
}
