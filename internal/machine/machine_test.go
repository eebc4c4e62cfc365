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
		{id{"GenuineIntel", 6, 85, 1024, false}, ""}, // not measured
		{id{"AuthenticAMD", 25, 1, 512, true}, ""},
		{id{}, ""},
	} {
		if got := profile(test.id); got.Settings != test.want || got.File != "" {
			t.Errorf("%v: %+v, want settings %q", test.id, got, test.want)
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
	file, err := Keep("shm.read=16k;shm.read.below=1m")
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Dir(file) != filepath.Join(cache, "gompi", "profile") || strings.ContainsAny(filepath.Base(file), ", ") {
		t.Errorf("kept in %q", file)
	}
	if p, err := Read(""); err != nil || p.Settings != "shm.read=16k;shm.read.below=1m" || p.File != file || p.Processor != built.Processor {
		t.Errorf("%+v, %v: want what was kept", p, err)
	}
	if err := os.WriteFile(file, []byte("# a comment\n\n a=1 \nb=2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if p, err := Read(""); err != nil || p.Settings != "a=1;b=2" {
		t.Errorf("%+v, %v: want what stands in the file", p, err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(file, 0o755); err != nil {
		t.Fatal(err)
	}
	if p, err := Read(""); err == nil || p.Settings != built.Settings {
		t.Errorf("%+v, %v: want an error, and the built-in profile", p, err)
	}
	if p, err := Read(file + ".not"); err == nil || p.Settings != built.Settings {
		t.Errorf("a file that is missing and was named: %+v, %v: want an error, and the built-in profile", p, err)
	}
	if p, err := Read(None); err != nil || p.Settings != "" || p.Processor == "" {
		t.Errorf("none: %+v, %v", p, err)
	}
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "")
	if p, err := Read(""); err != nil || p != built {
		t.Errorf("without a home: %+v, %v", p, err)
	}
}
