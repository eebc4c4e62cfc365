// Package ci tests the scripts of .ci, which Go does not look into.
package ci

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gompi/internal/stress"
)

func wants(t *testing.T, got, pattern string) {
	t.Helper()
	if !regexp.MustCompile(pattern).MatchString(got) {
		t.Errorf("got:\n%s\nwant what matches:\n%s", got, pattern)
	}
}

// Tests that a step skips are listed in the end by their reason, unless another step ran them, and
// counted where another target of make runs them; the output of failed tests is there.
func TestStepsListSkipsAndFailures(t *testing.T) {
	stress.Long(t, "it builds gotestsum")
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module some\n", "some_test.go": `package some
import ("os"; "testing")
func TestRuns(t *testing.T) { t.Log("nobody wants to know") }
func TestSkipped(t *testing.T) { t.Skip("needs \"root\"") }
func TestSkippedToo(t *testing.T) {
	t.Skip("needs \"root\"")
}
func TestLong(t *testing.T) { t.Skip("make test-all: it takes hours") }
func TestParts(t *testing.T) { t.Run("one", func(t *testing.T) { t.Skip("needs", "two") }) }
func TestLater(t *testing.T) { if os.Getenv("LATER") == "" { t.Skip("later") } }
func TestBad(t *testing.T) { if os.Getenv("LATER") != "" { t.Error("no good") } }
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	steps, err := filepath.Abs("../../.ci/steps")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash", "-c", `set -uo pipefail; . "$0"; step one gotest .; LATER=1 step two gotest .; passes`, steps)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Error("it has passed, although a test failed")
	}
	wants(t, string(out), `(?s)-- one: ok.*-- two: FAILED.*== what failed\n-- two\n.*TestBad.*some_test.go:11: no good.*`+
		`== tests that were skipped\n1 are left to make test-all\nsome TestParts/one: needs two\nsome TestSkipped: needs "root" \(and 1 more\)\n1 passed, 1 failed, 0 skipped\n$`)
}

// Work begun ahead of its step runs beside earlier steps, and counts as the step that awaits it.
func TestAStepMayBeginAheadOfOthers(t *testing.T) {
	stress.Long(t, "it builds gotestsum")
	steps, err := filepath.Abs("../../.ci/steps")
	if err != nil {
		t.Fatal(err)
	}
	meet := filepath.Join(t.TempDir(), "meet")
	if out, err := exec.Command("mkfifo", meet).CombinedOutput(); err != nil {
		t.Fatalf("mkfifo: %v: %s", err, out)
	}
	const script = `set -uo pipefail; meet=$1; shift; . "$0"
late() { echo late; read -r line <"$meet"; leaveOut "$line"; }
early() { echo early >"$meet"; echo met; }
bad() { return 3; }
ahead "b late" late; step "a early" early; step "b late" awaited
ahead "c bad" bad; step "c bad" awaited
ahead "d unwanted" late; step "d unwanted" awaited
passes`
	out, err := exec.Command("bash", "-c", script, steps, meet, "a ", "b ", "c ").CombinedOutput()
	if err == nil {
		t.Error("it has passed, although a step failed")
	}
	wants(t, string(out), `(?s)^== a early\nmet\n-- a early: ok.*== b late\nlate\nleft out: early\n-- b late: left out\n`+
		`== c bad\n-- c bad: FAILED.*b late: early\n1 passed, 1 failed, 1 skipped\n$`)
}

// A step that a compiler is missing for is counted apart, and named with its reason.
func TestAStepThatIsLeftOutIsNotCountedAsPassed(t *testing.T) {
	stress.Long(t, "it builds this program")
	bin := t.TempDir() // all that the script needs but for C compilers
	for _, name := range []string{"bash", "git", "go", "gofmt", "grep", "mktemp", "dirname", "tee", "tail", "sed", "rm",
		"awk", "sort", "cat", "wc"} {
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
	cmd := exec.Command("bash", "../../.ci/test", "-all", "format", "without CUDA", "needs C")
	cmd.Env = append(os.Environ(), "PATH="+bin, "GOROOT="+strings.TrimSpace(string(root)))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	wants(t, string(out), `(?s)== what was left out\n.*without CUDA: .*gcc\n1 passed, 0 failed, 2 skipped\n$`)
}

// The tally counts the passed runs since the last failure, on the files of one commit.
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
		cmd.Env = append(cmd.Env, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "QUIET=2", "BUSY=1",
			"TALLY="+filepath.Join(dir, ".git", "tally"))
		out, _ := cmd.CombinedOutput()
		return string(out)
	}
	put(".ci/tally", string(script))
	put("Makefile", "test-all:\n\t@echo 3 passed, 0 failed, 1 skipped; exit `cat status`\n")
	put("status", "0\n")
	wants(t, tally(), `(?s)(quiet passed .*){2}busy passed .* s: 3 passed, 0 failed, 1 skipped\n== .*: 2 of 2 in a row, and 1 of 1 beside`)
	put("README.md", "prose\n")
	wants(t, tally(), `^(.*nothing to commit.*)?== .*: 2 of 2 in a row, and 1 of 1 beside`)
	put("status", "1\n")
	wants(t, tally(), `(?s)the tally begins anew\n.*quiet failed .*: 0 of 2 in a row, and 0 of 1 beside.*log of a failure: `)
	put("status", "0\n")
	wants(t, tally(), `(?s)begins anew\n.*: 2 of 2 in a row, and 1 of 1 beside`)
}

// A target builds the programs alone that it runs or packs, as a newcomer waits for them. make libmpi
// builds by mpi/libmpi/build.
func TestTargetsBuildWhatTheyNeedAlone(t *testing.T) {
	const tools = "./mpirun/gompirun ./gompi-bench ./cudaops/topo/gompi-topo"
	for target, want := range map[string]string{"run": "./mpirun/gompirun ./examples/train", "libmpi": "", "deb": tools,
		"wheel": tools + " ./comm/gompi_torch/libgompi"} {
		cmd := exec.Command("make", "-n", "-B", target, "GO=go", "BIN=bin")
		cmd.Dir = "../.."
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		var built []string
		for _, found := range regexp.MustCompile(` -o \S+ (\./[^;#\n]*)`).FindAllStringSubmatch(string(out), -1) {
			built = append(built, strings.TrimSpace(found[1]))
		}
		if got := strings.Join(built, " "); got != want {
			t.Errorf("make %s builds %q, want %q, in\n%s", target, got, want, out)
		}
		if strings.Contains(string(out), "go build") {
			t.Errorf("make %s builds without a line of progress, by .ci/gobuild:\n%s", target, out)
		}
		if target == "run" {
			wants(t, string(out), `bin/gompirun -np \d+ -hostfile bin/hosts bin/train`)
		}
	}
}
