//go:build linux && cgo

package pmix

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestOurTypesAgreeWithPMIxs(t *testing.T) {
	const folder = "/usr/lib/x86_64-linux-gnu/pmix2/include"
	if _, err := os.Stat(folder + "/pmix.h"); err != nil {
		t.Skipf("left out: no pmix.h in %s (Debian has it in libpmix-dev)", folder)
	}
	if out, err := exec.Command("cc", "-fsyntax-only", "-Wall", "-Werror", "-Wno-unused-variable", "-I"+folder,
		"testdata/layout.c").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestALibraryThatIsMissingIsNamed(t *testing.T) {
	for _, path := range []string{"libgompi-has-none.so.0", "libm.so.6"} {
		err := open("", path)
		if !errors.Is(err, ErrLibrary) || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v: want one line that names it", path, err)
		}
	}
}

func TestTheLibraryOfALauncherIsFound(t *testing.T) {
	if err := open(library); err != nil {
		t.Skipf("left out: %v", err)
	}
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait() // an error, as it is killed
	defer cmd.Process.Kill()
	if path := ofLauncher(cmd.Process.Pid); !strings.Contains(path, "/"+library) {
		t.Errorf("%q, want the path that the parent has loaded", path)
	}
}
