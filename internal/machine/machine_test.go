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
		{id{"GenuineIntel", 6, 143, 2048, true},
			"shm.read=16k;shm.read.below=never;shm.ring.chunk=16k;shm.ring.bytes=256k;shm.ring.nontemporal=never;shm.nontemporal=2m;shm.nontemporal.rank=1m"},
		{id{"GenuineIntel", 6, 85, 1024, false}, ""}, // not measured
		{id{"AuthenticAMD", 26, 2, 1024, true},
			"shm.read=never;shm.ring.chunk=32k;shm.ring.bytes=2m;shm.ring.nontemporal=never;shm.ring.string=2k"},
		{id{"AuthenticAMD", 25, 17, 1024, true},
			"shm.read=never;shm.ring.chunk=32k;shm.ring.bytes=2m;shm.ring.nontemporal=8k"},
		{id{"AuthenticAMD", 23, 49, 512, true}, ""},
		{id{}, ""},
	} {
		if got := profile(test.id); got.Settings.String() != test.want || got.File != "" {
			t.Errorf("%v: %+v, want %s", test.id, got, test.want)
		}
	}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	for _, s := range []Settings{
		{}, {ReadFrom: 1}, {ReadFrom: 65536}, {ReadFrom: 100_000, ReadBelow: 1 << 30}, {ReadFrom: Never},
		{RingChunk: 4 << 10, RingBytes: 64 << 10, NonTemporal: Never},
		{RingChunk: 64 << 10, RingBytes: 2 << 20, NonTemporal: 4 << 10},
	} {
		if got, err := parse("# a comment; shm.read=1\n" + s.String() + "\n"); err != nil || got != s {
			t.Errorf("%v: read as %v, %v", s, got, err)
		}
	}
	if got, err := parse("\n shm.read = 4K ;\nshm.read.below= 2m \n"); err != nil ||
		got != (Settings{ReadFrom: 4096, ReadBelow: 2 << 20}) {
		t.Errorf("with spaces: %v, %v", got, err)
	}
	for _, wrong := range []string{
		"shm.read=many", "shm.read=", "shm.read=0", "shm.read", "shm.large=1m", "shm.read=4k shm.read.below=2m",
		"shm.read=99999999999g",
		"shm.ring.chunk=never", "shm.ring.chunk=65k", "shm.ring.bytes=32k", "shm.ring.bytes=4m",
		"shm.ring.nontemporal=1",
	} {
		name, value, _ := strings.Cut(wrong, "=")
		if _, err := parse(wrong); err == nil ||
			!strings.Contains(err.Error(), `"`+value) && !strings.Contains(err.Error(), `"`+name) ||
			!strings.Contains(err.Error(), "want ") {
			t.Errorf("%q: error %v: want one that quotes it and says what is wanted", wrong, err)
		}
	}
}

// A file from before there were other settings leaves them as they are built in. Its range of
// lengths is its own.
func TestAFileGoesBeforeWhatIsBuiltIn(t *testing.T) {
	base := Settings{ReadFrom: 32 << 10, ReadBelow: 8 << 20, RingChunk: 16 << 10, NonTemporal: Never}
	for text, want := range map[string]Settings{
		"":                        base,
		"shm.read=1m":             {ReadFrom: 1 << 20, RingChunk: 16 << 10, NonTemporal: Never},
		"shm.read=never":          {ReadFrom: Never, RingChunk: 16 << 10, NonTemporal: Never},
		"shm.read.below=1m":       {ReadFrom: 32 << 10, ReadBelow: 1 << 20, RingChunk: 16 << 10, NonTemporal: Never},
		"shm.ring.nontemporal=8k": {ReadFrom: 32 << 10, ReadBelow: 8 << 20, RingChunk: 16 << 10, NonTemporal: 8 << 10},
		"shm.read=1\nshm.read.below=2\nshm.ring.chunk=8k": {ReadFrom: 1, ReadBelow: 2, RingChunk: 8 << 10,
			NonTemporal: Never},
	} {
		if s, err := parse(text); err != nil || s.over(base) != want {
			t.Errorf("%q: %v, %v, want %v", text, s.over(base), err, want)
		}
	}
}

// A kept profile is read again, on this kind of machine alone.
func TestAProfileIsKept(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	built, err := Read("")
	if err != nil || built.File != "" {
		t.Fatalf("%+v, %v: want a built-in profile", built, err)
	}
	want := Settings{ReadFrom: 16 << 10, ReadBelow: 1 << 20, RingChunk: 8 << 10, RingBytes: 128 << 10,
		NonTemporal: Never, String: Never, Around: 3 << 20, AroundOwn: 1 << 20}
	file, err := Keep(want, "what was\nmeasured=1\n")
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Dir(file) != filepath.Join(cache, "gompi", "profile") {
		t.Errorf("kept in %q", file)
	}
	if p, err := Read(""); err != nil || p.Settings != want || p.File != file || p.Processor != built.Processor {
		t.Errorf("%+v, %v: want what was kept", p, err)
	}
	for _, elsewhere := range []string{"/dev/null", "/nonexistent"} {
		t.Setenv("XDG_CACHE_HOME", elsewhere)
		if p, err := Read(""); err != nil || p != built {
			t.Errorf("cache %s: %+v, %v: want the built-in profile", elsewhere, p, err)
		}
	}
	t.Setenv("XDG_CACHE_HOME", cache)
	spoil := func(what string, do func() error) {
		if err := do(); err != nil {
			t.Fatal(err)
		}
		if p, err := Read(""); err == nil || !strings.Contains(err.Error(), file) || p.File != file ||
			p.Settings != built.Settings {
			t.Errorf("%s: %+v, %v: want an error that names it, and the built-in profile", what, p, err)
		}
	}
	spoil("a file with something else", func() error { return os.WriteFile(file, []byte("a=1"), 0o644) })
	spoil("a long file", func() error { return os.WriteFile(file, make([]byte, most+1), 0o644) })
	spoil("a folder", func() error { os.Remove(file); return os.Mkdir(file, 0o755) })
	if p, err := Read(file + ".not"); err == nil || p.Settings != built.Settings {
		t.Errorf("a file that is missing and was named: %+v, %v: want an error, and the built-in profile", p, err)
	}
	if p, err := Read(None); err != nil || p.Settings != (Settings{}) || p.Processor == "" {
		t.Errorf("none: %+v, %v", p, err)
	}
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "")
	if p, err := Read(""); err != nil || p != built {
		t.Errorf("without a home: %+v, %v", p, err)
	}
}
