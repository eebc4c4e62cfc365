//go:build linux

package gompitorch

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const (
	start = "import torch.distributed as dist; dist.init_process_group('gompi'); print(f'rank {dist.get_rank()} is there')"
	// It ends with status 9 if torch asks for no backend of others by itself.
	autoloads = "import sys, torch; sys.exit(9 * (not hasattr(torch, '_import_device_backends')))"
)

// copyOf returns a folder for PYTHONPATH with a copy of the installed gompi_torch, and the
// package's folder in it.
func copyOf(t *testing.T, b Bed) (root, pkg string) {
	t.Helper()
	output, status := b.Run(t, b.Python, "-c",
		"import importlib.util as u; print(u.find_spec('gompi_torch').submodule_search_locations[0])")
	if status != 0 {
		t.Fatal(output)
	}
	root = t.TempDir()
	installed := strings.TrimSpace(output)
	all, _ := filepath.Glob(filepath.Join(filepath.Dir(installed), "gompi*")) // and the list of its entry points
	if out, err := exec.Command("cp", append(append([]string{"-r"}, all...), root)...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return root, filepath.Join(root, "gompi_torch")
}

// Whatever is wrong with gompi_torch, torch can be imported, and users of gompi_torch are told.
func TestTorchIsImportedWhateverIsWrong(t *testing.T) {
	b := NewBed(t)
	compiled := pathOfCompiled(t, b)
	write := func(name, text string) func(t *testing.T, pkg string) string {
		return func(t *testing.T, pkg string) string { return writeFile(t, filepath.Join(pkg, name), text) }
	}
	for name, c := range map[string]struct {
		damage func(t *testing.T, pkg string) string // returns a variable of the environment, or ""
		want   string
	}{
		"no compiler": {func(t *testing.T, _ string) string { return "CXX=/none" },
			`its C\+\+ part .* there is CXX=/none, which is not there: install g\+\+`},
		"what is compiled is none": {func(t *testing.T, _ string) string {
			writeFile(t, filepath.Join(os.Getenv("XDG_CACHE_HOME"), "gompi", filepath.Base(compiled)), "none")
			return ""
		}, `.*\.so cannot be loaded: .*: remove it`},
		"no libgompi": {func(t *testing.T, pkg string) string {
			if err := os.Remove(filepath.Join(pkg, "lib/libgompi.so")); err != nil {
				t.Fatal(err)
			}
			return "XDG_CACHE_HOME=" + filepath.Dir(filepath.Dir(compiled))
		}, `.*/libgompi\.so: .*: install gompi again`},
		"another backend": {func(*testing.T, string) string { return "GOMPI_TORCH_BACKEND=mpi" },
			`GOMPI_TORCH_BACKEND="mpi": want gompi, or unset`},
		"a torch with another c10d": {write("_backend.py", "from torch.distributed import nothing_like_it\n"),
			`ImportError: cannot import name 'nothing_like_it'`},
	} {
		t.Run(name, func(t *testing.T) {
			root, pkg := copyOf(t, b)
			t.Setenv("XDG_CACHE_HOME", t.TempDir())
			set := c.damage(t, pkg)
			reports(t, b, []string{"env", "PYTHONPATH=" + root, cmp.Or(set, "CXX=c++")}, c.want, name == "no compiler")
		})
	}
}

// reports fails the test unless the users of gompi_torch are told the fault, while a mere import
// neither tells nor fails. It tries all ways to use gompi_torch, or only ways that start no job.
func reports(t *testing.T, b Bed, env []string, want string, all bool) {
	t.Helper()
	for i, run := range []struct {
		argv   []string
		status int
		want   string
	}{
		{[]string{b.Python, "-c", "import torch, gompi_torch; print('survives')"}, 0, "^survives\n$"},
		{[]string{b.Python, "-m", "gompi_torch"}, 1, `(?m)^problem: +` + want},
		{[]string{b.Python, "-c", "from gompi_torch import heap; heap().__enter__()"}, 1,
			`(Import|Runtime)Error: gompi_torch: ` + want},
		{[]string{b.Gompirun, "-np", "2", b.Python, "-c", "import gompi_torch; " + start}, 1,
			`RuntimeError: gompi_torch: (no backend "gompi": )?` + want},
		{[]string{b.Gompirun, "-np", "2", "-torch-backend", "gompi", "tests/nccl.py"}, 1, `gompi_torch: ` + want},
	} {
		if i > 2 && !all {
			return
		}
		output, status := b.Run(t, append(env, run.argv...)...)
		if status != run.status || !regexp.MustCompile(run.want).MatchString(output) {
			t.Errorf("%q: status %d, want %d and %q:\n%s", run.argv, status, run.status, run.want, output)
		}
	}
}

// Nor is there a word where gompi_torch cannot even be imported.
func TestTorchIsImportedWithoutThePackage(t *testing.T) {
	b := NewBed(t)
	root, pkg := copyOf(t, b)
	if err := os.WriteFile(filepath.Join(pkg, "__init__.py"), []byte("raise SystemError('no')\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	output, status := b.Run(t, "env", "PYTHONPATH="+root, b.Python, "-c", "import torch; print('survives')")
	if output != "survives\n" || status != 0 {
		t.Errorf("status %d, want 0 and that torch survives:\n%s", status, output)
	}
	if _, status := b.Run(t, b.Python, "-c", autoloads); status == 9 {
		return // this torch calls nobody when it is imported
	}
	output, status = b.Run(t, "env", "GOMPI_TORCH_BACKEND=gompi", "PYTHONPATH="+root, b.Python, "-c",
		"import torch; print('survives')")
	if want := "gompi_torch: torch.distributed does without it: SystemError: no\nsurvives\n"; output != want ||
		status != 0 {
		t.Errorf("status %d, want 0 and %q:\n%s", status, want, output)
	}
}

func TestTorchFindsTheBackendByItself(t *testing.T) {
	b := NewBed(t)
	if _, status := b.Run(t, b.Python, "-c", autoloads); status == 9 {
		t.Skip("this torch looks for no backends of others: scripts import gompi_torch")
	}
	output, status := b.Run(t, b.Gompirun, "-np", "2", b.Python, "-c", start)
	tell(t, 2, "is there", output, status)
	const lazy = `import sys, torch
from torch.distributed.distributed_c10d import Backend
print(hasattr(Backend, "_ensure_backend_registered") == ("gompi_torch" not in sys.modules))`
	if output, status = b.Run(t, b.Python, "-c", lazy); output != "True\n" || status != 0 {
		t.Errorf("status %d, and gompi_torch is imported when torch need not, or not when it must:\n%s", status, output)
	}
}

func TestTorchOfUntestedVersionsIsReported(t *testing.T) {
	b := NewBed(t)
	const ask = `from gompi_torch import _versions as v
print(v.too_new("2.99.0a0+git"), v.too_old("1.12.1"), [v.too_new(x) + v.too_old(x) for x in ("1.13.0a0", "2.6.0+cu124", "2.15.1")], sep="|")`
	output, status := b.Run(t, b.Python, "-c", ask)
	want := "torch 2.99.0a0+git is newer than 2.15, the newest that it was tested with|torch 1.12.1 is older than 1.13, the oldest that it knows|['', '', '']\n"
	if output != want || status != 0 {
		t.Errorf("status %d, want 0 and %q:\n%s", status, want, output)
	}
	const newer = `from gompi_torch import _versions as v; v.TESTED = ("1.13", "1.13" if v.torch.__version__ > "2" else "1.12"); `
	output, status = b.Run(t, b.Gompirun, "-np", "2", b.Python, "-c", newer+start+"; dist.new_group([0, 1])")
	tell(t, 2, "is there", output, status)
	if n := len(regexp.MustCompile(`gompi_torch: torch \S+ is newer than`).FindAllString(output, -1)); n != 1 {
		t.Errorf("%d lines say that torch is newer, want 1:\n%s", n, output)
	}
}

// `python -m gompi_torch` alone prints the versions.
func TestTorchVersionsAreReported(t *testing.T) {
	b := NewBed(t)
	output, status := b.Run(t, "env", "PATH="+filepath.Dir(b.Gompirun)+":"+os.Getenv("PATH"), b.Python, "-m",
		"gompi_torch")
	const want = `^gompi_torch (\S+), .*/gompi_torch
compiled: +/\S+/gompi/gompi_torch-\S+-torch-\d\S+\.so
libgompi: +\S+, commit \S+, /\S+/libgompi\.so
gompirun: +gompirun (\S+), commit .*/bin/gompirun
Python: +3\.\S+, .*
torch: +\S+, .*/torch \(tested: 1\.13 to 2\.15\)
problem: +none
$`
	if m := regexp.MustCompile(want).FindStringSubmatch(output); m == nil || status != 0 || m[1] != m[2] {
		t.Errorf("status %d, want 0, one version of gompi_torch and gompirun, and %s:\n%s", status, want, output)
	}
}
