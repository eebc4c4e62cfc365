package mpirun

import (
	"debug/buildinfo"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"gompi/internal/stress"
)

// TestTheTarballIsWhole makes the tarball of this machine, with gompirun alone, looks for the
// files that its README links to and the licences of the linked packages, and installs it without
// Go.
func TestTheTarballIsWhole(t *testing.T) {
	for _, tool := range []string{"make", "git", "tar", "go"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	stress.Long(t, "it compiles gompirun anew")
	t.Parallel() // it waits for the compiler
	dist := t.TempDir()
	inDir(t, "..", "make", "dist", "DIST="+dist, "ARCHS="+runtime.GOARCH, "PROGS=./mpirun/gompirun", "CC=none")
	tarballs, _ := filepath.Glob(filepath.Join(dist, "*.tar.gz"))
	if len(tarballs) != 1 {
		t.Fatalf("tarballs: %q", tarballs)
	}
	inDir(t, dist, "tar", "-xzf", tarballs[0])
	root := strings.TrimSuffix(tarballs[0], ".tar.gz")

	linksWork(t, root)
	licencesAreThere(t, root)
	version := inDir(t, root, "bin/gompirun", "-version")
	if described := inDir(t, "..", "git", "describe", "--always", "--dirty"); !strings.Contains(version,
		"commit "+described+" (") {
		t.Errorf("version %q, want commit %s", version, described)
	}

	t.Run("install", func(t *testing.T) {
		stage := t.TempDir()
		inDir(t, root, "env", "PATH=/usr/bin:/bin", "make", "install", "GO=/nonexistent", "PREFIX=/opt/gompi",
			"DESTDIR="+stage)
		if got := inDir(t, stage, "opt/gompi/bin/gompirun", "-version"); got != version {
			t.Errorf("version %q installed, want %q", got, version)
		}
		for _, name := range []string{"README.md", "docs/options.md", "examples/hello", "licences/go/LICENSE"} {
			if _, err := os.Stat(filepath.Join(stage, "opt/gompi/share/doc/gompi", name)); err != nil {
				t.Error(err)
			}
		}
	})
}

// inDir runs a command in dir and returns its output.
func inDir(t *testing.T, dir string, command ...string) string {
	t.Helper()
	path := command[0]
	if strings.Contains(path, "/") {
		path = filepath.Join(dir, path)
	}
	cmd := exec.CommandContext(t.Context(), path, command[1:]...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", command, err, out)
	}
	return strings.TrimSpace(string(out))
}

// linksWork follows the links of all pages to files.
func linksWork(t *testing.T, root string) {
	t.Helper()
	docs, _ := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	pages, _ := filepath.Glob(filepath.Join(root, "*.md"))
	links := 0
	for _, page := range append(pages, docs...) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\]\(([^)#\s]+)[^)]*\)`).FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s links to %s: %v", filepath.Base(page), m[1], err)
			}
		}
	}
	if links < 20 {
		t.Errorf("%d links: want those of README.md and docs", links)
	}
}

// licencesAreThere looks for a licence of each module that gompirun is linked from.
func licencesAreThere(t *testing.T, root string) {
	t.Helper()
	info, err := buildinfo.ReadFile(filepath.Join(root, "bin/gompirun"))
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"go", "github.com/NVIDIA/go-nvml"} // gompi-topo's
	for _, m := range info.Deps {
		names = append(names, m.Path)
	}
	if len(names) < 4 {
		t.Errorf("gompirun is linked from %q: want pflag and others", names)
	}
	for _, name := range names {
		if files, _ := filepath.Glob(filepath.Join(root, "licences", name, "LICENSE*")); len(files) == 0 {
			t.Errorf("no licence of %s", name)
		}
	}
}
