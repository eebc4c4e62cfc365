package main

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gompi/internal/stress"
	"gompi/mpirun/internal/manual"
)

// make install puts files where man, shells and pkg-config look, a Debian package has them, and
// make uninstall removes them and the files of earlier versions, and no others.
func TestMakeInstallsAndUninstalls(t *testing.T) {
	stress.Long(t, "collects licences, for seconds")
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("needs make")
	}
	bin, to := t.TempDir(), t.TempDir()
	write := func(path, text string) {
		t.Helper()
		path = filepath.Join(bin, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write("gompirun", "#!/bin/sh\necho gompirun of a test\n")
	write("gompi-topo", "")
	for _, name := range []string{"libgompi.so", "gompi.h", "libgompi-mpi.so", "abi/libmpi_abi.so.1",
		"abi/include/mpi.h", "bin/mpicc"} {
		write("lib/"+name, "")
	}
	gompicc, err := filesWith("../../../../mpi/libmpi/gompicc")
	if err != nil {
		t.Fatal(err)
	}
	all := manual.Files()
	maps.Copy(all, gompicc)
	for name, text := range all {
		write("share/"+name, text)
	}
	write("share/gompi/valgrind.supp", "")
	run := func(target string) {
		t.Helper()
		cmd := exec.Command("make", "-s", target, "BIN="+bin, "DESTDIR="+to, "PREFIX=/opt")
		cmd.Dir = "../../../.."
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("make %s: %v: %s", target, err, out)
		}
	}
	run("install")
	found := installed(t, to)
	for _, want := range []string{"bin/gompirun", "lib/gompi/libgompi-mpi.so", "lib/gompi/abi/include/mpi.h", "lib/gompi/bin/mpicc",
		"lib/pkgconfig/gompi-mpi.pc", "share/man/man1/gompirun.1", "share/man/man1/gompicc.1", "share/man/man1/gompicxx.1",
		"share/gompi/valgrind.supp", "share/bash-completion/completions/gompirun", "share/zsh/site-functions/_gompirun",
		"share/fish/vendor_completions.d/gompirun.fish", "share/doc/gompi/README.md",
		"share/doc/gompi/licences/github.com/NVIDIA/go-nvml/LICENSE"} {
		if !slices.Contains(found, "opt/"+want) {
			t.Errorf("make install leaves out %s", want)
		}
	}
	if slices.Contains(found, "opt/lib/libgompi.so") || slices.Contains(found, "opt/include/gompi.h") {
		t.Error("make install installs the library of gompi_torch, which is for the wheel alone")
	}
	if _, err := exec.LookPath("pkg-config"); err == nil {
		cmd := exec.Command("pkg-config", "--cflags", "--libs", "gompi-mpi")
		cmd.Env = append(os.Environ(), "PKG_CONFIG_PATH="+filepath.Join(to, "opt/lib/pkgconfig"))
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "-l:libmpi_abi.so.1") ||
			!strings.Contains(string(out), "include") {
			t.Errorf("pkg-config: %v: %s", err, out)
		}
	}
	if _, err := exec.LookPath("dpkg-deb"); err == nil {
		debian(t, bin)
	}
	for _, earlier := range []string{"bin/gompi-compare", "lib/libgompi.so", "lib/libgompi-core.so", "include/gompi.h", "lib/pkgconfig/gompi.pc"} {
		path := filepath.Join(to, "opt", earlier)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	const others = "opt/bin/gompi-someone-elses"
	if err := os.WriteFile(filepath.Join(to, others), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if run("uninstall"); !slices.Equal(installed(t, to), []string{others}) {
		t.Errorf("make uninstall leaves %q, want %s", installed(t, to), others)
	}
	os.RemoveAll(to)
	run("uninstall") // of nothing
}

// debian makes a package of the files in bin, and checks its content.
func debian(t *testing.T, bin string) {
	t.Helper()
	command := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = "../../../.."
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %q: %v: %s", name, args, err, out)
		}
		return string(out)
	}
	dist := t.TempDir()
	command(".ci/deb", bin, dist, "1.2.3", "abc-dirty")
	arch := strings.TrimSpace(command("dpkg", "--print-architecture"))
	file := filepath.Join(dist, "gompi_1.2.3+gitabc.dirty-1_"+arch+".deb")
	if got := command("dpkg-deb", "-f", file, "Package", "Version",
		"Depends"); got != "Package: gompi\nVersion: 1.2.3+gitabc.dirty-1\nDepends: libc6 (>= 2.17)\n" {
		t.Errorf("the package says of itself:\n%s", got)
	}
	found := command("dpkg-deb", "-c", file)
	for _, want := range []string{"bin/gompirun", "lib/gompi/libgompi-mpi.so", "lib/gompi/bin/mpicc", "share/man/man1/gompirun.1.gz",
		"share/doc/gompi/copyright", "share/doc/gompi/changelog.gz", "share/doc/gompi/README.md"} {
		if !strings.Contains(found, " ./usr/"+want+"\n") {
			t.Errorf("the package has no %s", want)
		}
	}
}

// installed returns the files below a folder.
func installed(t *testing.T, folder string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			path, err = filepath.Rel(folder, path)
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
