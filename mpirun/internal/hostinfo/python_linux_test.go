package hostinfo

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gompi/mpirun/internal/ctl"
)

// write writes an executable file, with its folders, and returns its path.
func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o777); err != nil {
		t.Fatal(err)
	}
	return path
}

// Versions come from pip's files: nothing is imported, and the working directory is left out.
func TestVersionsOfPythonsPackagesAreFoundWithoutImports(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("needs python3")
	}
	said, err := exec.Command(python, "-c", "import sys; print(sys.version.split()[0], sys.executable, end='')").Output()
	if err != nil {
		t.Fatal(err)
	}
	version, executable, _ := strings.Cut(string(said), " ")
	dir, here := t.TempDir(), t.TempDir()
	write(t, dir+"/torch-2.6.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: torch\nVersion: 2.6.0+cpu\n")
	write(t, dir+"/torch/__init__.py", "raise SystemExit('imported')")
	write(t, here+"/gompi-9.dist-info/METADATA", "Metadata-Version: 2.1\nName: gompi\nVersion: 9\n")
	vars := append(os.Environ(), "PYTHONPATH="+dir)
	want := ctl.Python{Path: executable, Version: version, Torch: "2.6.0+cpu"}
	got := Python(vars, here)
	if got.GompiTorch == "9" {
		t.Error("the working directory is searched")
	}
	if got.GompiTorch = ""; got != want { // a wheel may be installed here
		t.Errorf("%+v, want %+v", got, want)
	}
	write(t, dir+"/gompi-0.1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: gompi\nVersion: 0.1.0\n")
	if want.GompiTorch = "0.1.0"; Python(vars, here) != want {
		t.Errorf("%+v, want %+v", Python(vars, here), want)
	}
}

func TestAPythonThatDoesNotAnswerIsReported(t *testing.T) {
	dir := t.TempDir()
	if got := Python([]string{"PATH=" + dir}, "/"); got != (ctl.Python{}) {
		t.Errorf("%+v without a python3", got)
	}
	for text, want := range map[string]string{
		"exit 3":                        "exit status 3",
		"echo 'no \x1bsuch' >&2; false": "exit status 1: no  such",
		"echo hello":                    `it printed "hello\n", want its version`,
		"echo welcome; echo 3.12.1,,0.1.0,/bin/p": "3.12.1",
	} {
		write(t, dir+"/python3", "#!/bin/sh\n"+text+"\n")
		if got := Python([]string{"PATH=" + dir}, "/"); got.Version != want {
			t.Errorf("%q: %+v, want %q", text, got, want)
		}
	}
	slow := write(t, dir+"/slow", "#!/bin/sh\n/bin/sleep 1000\n")
	if _, err := output(time.Millisecond, nil, "/", slow); err == nil || err.Error() != "no answer after 1ms" {
		t.Errorf("%v, want no answer", err)
	}
}
