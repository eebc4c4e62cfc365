package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A step that a compiler is missing for is counted apart, and named with its reason.
func TestAStepThatIsLeftOutIsNotCountedAsPassed(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds this program")
	}
	bin := t.TempDir() // all that the script needs but for C compilers
	for _, name := range []string{"bash", "git", "go", "gofmt", "grep", "mktemp", "dirname", "tee", "tail", "rm", "awk", "sort", "cat", "wc"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Skipf("it needs %s", name)
		}
		if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash", "../../.ci/test", "format", "without CUDA", "race detector")
	cmd.Env = append(os.Environ(), "PATH="+bin, "GOROOT="+strings.TrimSpace(string(root)))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	wants(t, string(out), `(?s)== what was left out\n.*under the race detector: .*gcc\n1 passed, 0 failed, 2 skipped\n$`)
}

// The tally counts what has passed since anything failed, on the files of one commit.
func TestTheTallyBeginsAnewWhenCodeChanges(t *testing.T) {
	for _, name := range []string{"bash", "git", "make"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("it needs %s", name)
		}
	}
	dir := t.TempDir()
	script, err := os.ReadFile("../../.ci/tally")
	if err != nil {
		t.Fatal(err)
	}
	put := func(name, text string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	tally := func() string {
		cmd := exec.Command("bash", "-c", "git init -q && git add -A && { git -c user.name=n -c user.email=e commit -qm 1 || :; } && .ci/tally")
		cmd.Dir = dir
		// A caller's GIT_DIR or configuration must not lead git elsewhere.
		cmd.Env = slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "GIT_") })
		cmd.Env = append(cmd.Env, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "QUIET=2", "BUSY=1", "TALLY="+filepath.Join(dir, ".git", "tally"))
		out, _ := cmd.CombinedOutput()
		return string(out)
	}
	put(".ci/tally", string(script))
	put("Makefile", "test:\n\t@echo 3 passed, 0 failed, 1 skipped; exit `cat status`\n")
	put("status", "0\n")
	wants(t, tally(), `(?s)(quiet passed .*){2}busy passed .* s: 3 passed, 0 failed, 1 skipped\n== .*: 2 of 2 in a row, and 1 of 1 beside`)
	put("README.md", "prose\n")
	wants(t, tally(), `^(.*nothing to commit.*)?== .*: 2 of 2 in a row, and 1 of 1 beside`)
	put("status", "1\n")
	wants(t, tally(), `(?s)the tally begins anew\n.*quiet failed .*: 0 of 2 in a row, and 0 of 1 beside.*log of a failure: `)
	put("status", "0\n")
	wants(t, tally(), `(?s)begins anew\n.*: 2 of 2 in a row, and 1 of 1 beside`)
}
