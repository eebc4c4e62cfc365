package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/base64"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"gompi/internal/stress"
	"gompi/internal/version"
)

// TestTheWheelIsWhole makes a wheel and installs it for a Python of its own, whose gompirun runs
// ranks, which find gompi_torch's library. There is no torch: gompi_torch says so.
func TestTheWheelIsWhole(t *testing.T) {
	for _, tool := range []string{"make", "go", "cc", "python3"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	if err := exec.Command("python3", "-c", "import venv, pip").Run(); err != nil {
		t.Skip("python3 has no venv or pip")
	}
	stress.Nightly(t, "it builds all libraries anew")
	bin, dist := t.TempDir(), t.TempDir()
	run(t, "make", "-C", "../..", "wheel", "BIN="+bin, "DIST="+dist)
	wheels, _ := filepath.Glob(filepath.Join(dist, "*"))
	if len(wheels) != 1 {
		t.Fatalf("made: %q, want a wheel", wheels)
	}
	t.Run("contents", func(t *testing.T) { contentsAreRight(t, wheels[0]) })

	venv := t.TempDir()
	python := filepath.Join(venv, "bin/python")
	run(t, "python3", "-m", "venv", "--without-pip", venv)
	run(t, "python3", "-m", "pip", "--python", python, "install", "--no-index", "--no-deps", wheels[0])
	gompirun := filepath.Join(venv, "bin/gompirun")
	if output := run(t, gompirun, "-version"); !strings.HasPrefix(output, "gompirun "+version.Number+", commit ") {
		t.Errorf("version %q", output)
	}
	run(t, gompirun, "-np", "2", filepath.Join(venv, "bin/gompi-bench"), "run", "-sizes", "8", "latency")
	ring, names := filepath.Join(venv, "ring"), filepath.Join(venv, "lib/gompi/bin")
	run(t, filepath.Join(names, "mpicc"), "-o", ring, "../../examples/c/ring.c")
	if output := run(t, filepath.Join(names, "mpirun"), "-np", "2", ring); output != "around 2 ranks: 1, want 1\n" {
		t.Errorf("a program of the wheel's mpicc says %q", output)
	}
	const rank = `import ctypes, importlib.util as u
gompi = ctypes.CDLL(u.find_spec("gompi_torch").submodule_search_locations[0] + "/lib/libgompi.so")
size = ctypes.c_int()
print("ok" if [gompi.gompi_init(ctypes.c_int64(0)), gompi.gompi_size(1, ctypes.byref(size)), gompi.gompi_finalize(), size.value] == [0, 0, 0, 2] else "no")
`
	if output := run(t, gompirun, "-np", "2", python, "-c", rank); output != "ok\nok\n" {
		t.Errorf("ranks in C say %q, want ok twice", output)
	}
	out, err := exec.Command(python, "-c", "import gompi_torch").CombinedOutput()
	if err == nil || !strings.Contains(string(out),
		"gompi_torch wants PyTorch, which this Python lacks: pip install torch") {
		t.Errorf("%v, want that torch is missing:\n%s", err, out)
	}
	run(t, "python3", "-m", "pip", "--python", python, "uninstall", "-y", "gompi")
	if left, _ := filepath.Glob(filepath.Join(venv, "lib/python3*/site-packages/*")); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
}

func run(t *testing.T, argv ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", argv, err, out)
	}
	return string(out)
}

// contentsAreRight fails the test unless a wheel has the files of its record, and needs no newer
// glibc than its name says.
func contentsAreRight(t *testing.T, path string) {
	name := regexp.MustCompile(`^gompi-` + regexp.QuoteMeta(version.Number) +
		`-py3-none-manylinux_2_(\d+)_\w+\.whl$`).FindStringSubmatch(filepath.Base(path))
	if name == nil || runtime.GOARCH == "amd64" && name[1] != "17" {
		t.Fatalf("%s: want a name for any Python 3 and for glibc 2.17", path)
	}
	tag, _ := strconv.Atoi(name[1])
	z, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	record, binaries := "", 0
	for _, f := range z.File {
		text, err := fs.ReadFile(z, f.Name)
		if err != nil {
			t.Fatal(err)
		}
		if path := f.Name; strings.HasSuffix(path, ".dist-info/RECORD") {
			record += path + ",,\n"
			if string(text) != record {
				t.Errorf("the record is\n%s\nwant\n%s", text, record)
			}
			continue
		}
		sum := sha256.Sum256(text)
		record += fmt.Sprintf("%s,sha256=%s,%d\n", f.Name, base64.RawURLEncoding.EncodeToString(sum[:]), len(text))
		if needs, is := newestSymbol(t, f.Name, text); is {
			binaries++
			if needs > tag {
				t.Errorf("%s needs glibc 2.%d", f.Name, needs)
			}
		}
	}
	if binaries < 6 { // and the faces of MPI whose header is installed
		t.Errorf("%d programs and libraries, want 6 or more", binaries)
	}
}

// newestSymbol returns the newest version of glibc that a symbol of a file has, if that is a
// program or a library.
func newestSymbol(t *testing.T, name string, text []byte) (minor int, is bool) {
	f, err := elf.NewFile(bytes.NewReader(text))
	if err != nil {
		return 0, false
	}
	symbols, _ := f.ImportedSymbols() // a static program has none
	for _, s := range symbols {
		if n, ok := strings.CutPrefix(s.Version, "GLIBC_2."); ok {
			n, _, _ = strings.Cut(n, ".")
			v, err := strconv.Atoi(n)
			if err != nil {
				t.Errorf("%s: %s@%s", name, s.Name, s.Version)
			}
			minor = max(minor, v)
		}
	}
	return minor, true
}

// Equal files make equal wheels.
func TestWheelsAreEqual(t *testing.T) {
	var made [2][]byte
	for i := range made {
		w := wheel{}
		w.write("b", "2")
		w.add("a/main.go", "main.go")
		w.write("RECORD", w.record("RECORD"))
		name := filepath.Join(t.TempDir(), "x.whl")
		if err := w.zip(name); err != nil || w.err != nil {
			t.Fatal(err, w.err)
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		made[i] = text
	}
	if !bytes.Equal(made[0], made[1]) {
		t.Error("two wheels of the same files differ")
	}
}

// A file that wants more than glibc is refused, and one that is not there.
func TestWhatOtherMachinesLackIsRefused(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	cc := exec.Command("cc", "-x", "c", "-", "-o", program, "-Wl,--no-as-needed", "-lm")
	cc.Stdin = strings.NewReader("int main(void) { return 0; }")
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip(err)
	}
	if out, err := cc.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	w := wheel{}
	w.add("program", program)
	if tag, err := w.tag(); err == nil ||
		!regexp.MustCompile(`^program: it needs libm\.so.*: want what is part of every glibc`).MatchString(err.Error()) {
		t.Errorf("tag %q, %v", tag, err)
	}
	w.add("other", "/none/such")
	if w.err == nil {
		t.Error("a file that is not there is taken")
	}
}

// The table is auditwheel's.
func TestTagsAreThoseOfAuditwheel(t *testing.T) {
	for version, want := range map[string]int{"GLIBC_2.2.5": 2, "GLIBC_2.34": 34, "GCC_3.0": 0, "GLIBCXX_3.4": 17,
		"GLIBCXX_3.4.19": 17, "GLIBCXX_3.4.22": 24, "GLIBCXX_3.4.30": 35, "CXXABI_1.3": 17, "CXXABI_1.3.9": 24} {
		if got, err := oldest(version); got != want || err != nil {
			t.Errorf("%s: glibc 2.%d, %v, want 2.%d", version, got, err, want)
		}
	}
	for _, version := range []string{"GLIBC_PRIVATE", "GLIBCXX_3.4.99", "OPENSSL_1.1"} {
		if got, err := oldest(version); err == nil {
			t.Errorf("%s: glibc 2.%d, want an error", version, got)
		}
	}
}
