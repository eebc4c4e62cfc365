//go:build linux

package gompitorch

import (
	"debug/elf"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pathOfCompiled returns the path of the compiled C++ part.
func pathOfCompiled(t *testing.T, b Bed) string {
	t.Helper()
	output, status := b.Run(t, b.Python, "-c", "from gompi_torch import _compile; print(_compile.path())")
	if status != 0 {
		t.Fatal(output)
	}
	return strings.TrimSpace(output)
}

// writeFile writes a file, which can be run, and the folders above it, and returns "".
func writeFile(t *testing.T, path, text string) string {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return ""
}

// filesOf lists the files of a folder.
func filesOf(t *testing.T, folder string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// withoutGompi is a folder with all packages that lie beside torch, except for gompi's.
func withoutGompi(t *testing.T, b Bed) string {
	t.Helper()
	output, status := b.Run(t, b.Python, "-c",
		"import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))")
	if status != 0 {
		t.Fatal(output)
	}
	all, _ := filepath.Glob(filepath.Join(strings.TrimSpace(output), "*"))
	folder := t.TempDir()
	for _, path := range all {
		if name := filepath.Base(path); !strings.HasPrefix(name, "gompi") {
			if err := os.Symlink(path, filepath.Join(folder, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return folder
}

// environment makes a Python environment with what lies beside torch but for gompi, and returns its
// folder, and its pip.
func environment(t *testing.T, b Bed) (venv string, pip func(argv ...string)) {
	t.Helper()
	venv = t.TempDir()
	if output, status := b.Run(t, b.Python, "-m", "venv", "--without-pip", venv); status != 0 {
		t.Fatal(output)
	}
	site, _ := filepath.Glob(filepath.Join(venv, "lib/python3*/site-packages"))
	writeFile(t, filepath.Join(site[0], "torch.pth"), withoutGompi(t, b))
	return venv, func(argv ...string) {
		t.Helper()
		python := filepath.Join(venv, "bin/python")
		if output, status := b.Run(t, append([]string{b.Python, "-m", "pip", "--python", python},
			argv...)...); status != 0 {
			t.Fatalf("%q: status %d:\n%s", argv, status, output)
		}
	}
}

// Where the wheel has the C++ part for a torch, no compiler is needed, and nothing is kept.
func TestTorchWheelNeedsNoCompiler(t *testing.T) {
	b := NewBed(t)
	output, status := b.Run(t, b.Python, "-c", "from gompi_torch import _compile; print(_compile.shipped())")
	text, err := os.ReadFile(pathOfCompiled(t, b))
	if status != 0 || err != nil {
		t.Fatalf("%s%v", output, err)
	}
	compiled, dist := t.TempDir(), t.TempDir()
	name := filepath.Base(strings.TrimSpace(output))
	writeFile(t, filepath.Join(compiled, name), string(text))
	cmd := exec.CommandContext(t.Context(), "go", "run", "./internal/wheel", "bin", "bin/licences", dist, compiled)
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	wheels, _ := filepath.Glob(filepath.Join(dist, "*"))
	venv, pip := environment(t, b)
	pip("install", "--no-index", "--no-deps", wheels[0])

	cache := filepath.Join(t.TempDir(), "none")
	env := []string{"env", "-i", "PATH=" + filepath.Join(venv, "bin"), "XDG_CACHE_HOME=" + cache}
	output, status = b.RunGloo(t, append(env, "gompirun", "-np", "2", "python", "tests/step.py")...)
	tell(t, 2, "has gloo's parameters", output, status)
	if _, err := os.Stat(cache); err == nil || strings.Contains(output, "compiling") {
		t.Errorf("%v; want that nothing is compiled:\n%s", err, output)
	}
	output, _ = b.Run(t, append(env, "python", "-m", "gompi_torch")...)
	if !regexp.MustCompile(`compiled: +` + venv + `/\S+/lib/torch/` + name + "\n").MatchString(output) {
		t.Errorf("want %s, which the wheel has:\n%s", name, output)
	}
}

// The wheel is all that a Python with torch needs: its C++ part is compiled once, though two ranks
// start, and found by the next job. To uninstall it leaves the cache alone.
func TestTorchWheelCompilesOnce(t *testing.T) {
	b := NewBed(t)
	wheels, _ := filepath.Glob("../../dist/gompi-*.whl")
	if len(wheels) != 1 {
		t.Fatalf("%q: want the wheel that make wheel makes", wheels)
	}
	venv, pip := environment(t, b)
	cache := t.TempDir()
	before := filesOf(t, venv)
	pip("install", "--no-index", "--no-deps", wheels[0])

	script := filepath.Join(t.TempDir(), "script.py")
	writeFile(t, script, "import gompi_torch\n"+start+"\n")
	env := []string{"env", "XDG_CACHE_HOME=" + cache, "PATH=" + filepath.Join(venv, "bin") + ":" + os.Getenv("PATH")}
	for job, compiles := range []int{1, 0} {
		output, status := b.Run(t, append(env, "gompirun", "-np", "2", "python", script)...)
		tell(t, 2, "is there", output, status)
		if n := strings.Count(output, "gompi_torch: compiling its C++ part for torch"); n != compiles ||
			strings.Contains(output, "warning") {
			t.Errorf("job %d compiles %d times, want %d, and no warnings:\n%s", job, n, compiles, output)
		}
	}
	kept := filesOf(t, cache)
	output, status := b.Run(t, append(env, "python", "-m", "gompi_torch")...)
	want := fmt.Sprintf(`(?s)compiled: +(%s/gompi/\S+\.so)\nlibgompi: .*, %s/.*\ngompirun: .*, %s/.*problem: +none`,
		cache, venv, venv)
	if m := regexp.MustCompile(want).FindStringSubmatch(output); m == nil || status != 0 ||
		!slices.Equal(kept, []string{strings.TrimSuffix(m[1], "so") + "lock", m[1]}) {
		t.Errorf("status %d, want 0 and %q, of %q:\n%s", status, want, kept, output)
	}
	pip("uninstall", "-y", "gompi")
	if after := filesOf(t, venv); !slices.Equal(before, after) {
		t.Errorf("left in the environment:\n%q, want\n%q", after, before)
	}
}

// Hosts with processors of several kinds may share a home.
func TestTorchIsCompiledForEachProcessor(t *testing.T) {
	b := NewBed(t)
	here := pathOfCompiled(t, b)
	output, status := b.Run(t, b.Python, "-c", "import platform; platform.machine = lambda: 'other'\n"+
		"from gompi_torch import _compile; print(_compile.path())")
	if there := strings.TrimSpace(output); status != 0 || there == here {
		t.Errorf("status %d, %s on both", status, there)
	}
}

// One file serves all versions of Python: it has no symbol of theirs. With torch 1 it has.
func TestTorchIsCompiledWithoutPython(t *testing.T) {
	b := NewBed(t)
	if _, status := b.Run(t, b.Python, "-c", "import sys, torch; sys.exit(torch.__version__ < '2')"); status != 0 {
		t.Skip("torch 1 has its groups by pybind11")
	}
	f, err := elf.Open(pathOfCompiled(t, b))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.DynamicSymbols()
	libraries, err2 := f.ImportedLibraries()
	if err != nil || err2 != nil || len(symbols) < 100 {
		t.Fatalf("%d symbols, %v, %v", len(symbols), err, err2)
	}
	for _, s := range symbols {
		libraries = append(libraries, s.Name)
	}
	for _, name := range libraries {
		if regexp.MustCompile("^_?Py|^lib.*python").MatchString(name) {
			t.Errorf("it has %s", name)
		}
	}
}

// fakeCompiler is a compiler that runs lines of sh: $out is its output file.
func fakeCompiler(t *testing.T, lines string) (env []string, cache string) {
	t.Helper()
	cache = t.TempDir()
	path := filepath.Join(cache, "c++")
	writeFile(t, path, "#!/bin/sh\nwhile [ \"$1\" != -o ]; do shift; done\nout=$2\ncd "+cache+"\n"+lines)
	return []string{"env", "XDG_CACHE_HOME=" + cache, "CXX=env A=1 " + path}, cache
}

// Processes that come while another compiles wait, and take the result.
func TestTorchIsCompiledByOneProcess(t *testing.T) {
	b := NewBed(t)
	env, cache := fakeCompiler(t, "echo compiles >>log\ncp "+pathOfCompiled(t, b)+" $out\n")
	output, status := b.Run(t, append(env, b.Gompirun, "-oversubscribe", "-np", "4", b.Python, "-m", "gompi_torch",
		"--build")...)
	log, err := os.ReadFile(filepath.Join(cache, "log"))
	if err != nil || string(log) != "compiles\n" || status != 0 {
		t.Errorf("status %d, %v; compilers: %q, want one:\n%s", status, err, log, output)
	}
}

// A process that is killed while it compiles leaves no file by the name in use, and no lock.
func TestTorchIsCompiledAfterAKill(t *testing.T) {
	b := NewBed(t)
	const killed = `if mkdir first; then
	echo a part >$out
	kill -KILL $PPID
	exit
fi
cp `
	env, cache := fakeCompiler(t, killed+pathOfCompiled(t, b)+" $out\n")
	build := append(env, b.Python, "-m", "gompi_torch", "--build")
	cmd := exec.CommandContext(t.Context(), build[0], build[1:]...)
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != -1 {
		t.Fatalf("%v: want that it is killed", err)
	}
	if left := filesOf(t, filepath.Join(cache, "gompi")); len(left) != 2 || !strings.HasSuffix(left[1], ".tmp") {
		t.Errorf("the compiler that was killed leaves %q, want a lock and a part of a file", left)
	}
	output, status := b.Run(t, build...)
	if left := filesOf(t, filepath.Join(cache, "gompi")); status != 0 || len(left) != 2 ||
		!strings.HasSuffix(left[1], ".so") {
		t.Fatalf("status %d, want 0, and the lock and the file of %q:\n%s", status, left, output)
	}
	if output, status = b.Run(t, append(env, b.Gompirun, "-np", "2", b.Python, "-c",
		"import gompi_torch; "+start)...); status != 0 {
		t.Errorf("status %d, want 0:\n%s", status, output)
	}
}

// If the compiler fails, its output and a remedy are reported.
func TestTorchSaysWhyItIsNotCompiled(t *testing.T) {
	b := NewBed(t)
	env, cache := fakeCompiler(t, "seq 30; echo no such header\necho a part >$out\nexit 3\n")
	output, status := b.Run(t, append(env, b.Python, "-m", "gompi_torch", "--build")...)
	const want = `(?s)RuntimeError: gompi_torch: \S+/env A=1 \S+/c\+\+ failed with status 3; its last lines:\n    12\n.*\n    30\n    no such header\n` +
		`gompi_torch: want a compiler of C\+\+20, .* The command was: \S+/env A=1 `
	if status != 1 || !regexp.MustCompile(want).MatchString(output) {
		t.Errorf("status %d, want 1 and %s:\n%s", status, want, output)
	}
	if kept, _ := filepath.Glob(filepath.Join(cache, "gompi/*[^k]")); len(kept) != 0 {
		t.Errorf("kept: %q", kept)
	}
	output, status = b.Run(t, append(env, "XDG_CACHE_HOME=/dev/null", b.Python, "-m", "gompi_torch", "--build")...)
	if status != 1 || !strings.Contains(output, "cannot be kept in /dev/null/gompi: ") ||
		!strings.Contains(output, "name another folder by XDG_CACHE_HOME") {
		t.Errorf("status %d, want 1 and where it cannot be kept:\n%s", status, output)
	}
}
