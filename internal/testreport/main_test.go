package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const somePasses = `package some
import "testing"
func TestRuns(t *testing.T) { t.Log("nobody wants to know") }
func TestSkipped(t *testing.T) { t.Skip("needs root") }
func TestParts(t *testing.T) { t.Run("one", func(t *testing.T) { t.Skip("needs", "two") }) }
`

// run has the real go test run a package, and returns what a report of it says.
func run(t *testing.T, source string) (said string, r *report) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module some\n", "some_test.go": source} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("go", "test", "-count=1", "-vet=off", "-json", ".")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	var b strings.Builder
	r = newReport(&b)
	if err := r.read(strings.NewReader(string(out))); err != nil {
		t.Fatal(err)
	}
	r.listSkipped()
	if failed := err != nil; failed != r.failed {
		t.Errorf("go test: %v, the report: failed %v", err, r.failed)
	}
	return b.String(), r
}

func wants(t *testing.T, got, pattern string) {
	t.Helper()
	if !regexp.MustCompile(pattern).MatchString(got) {
		t.Errorf("got:\n%s\nwant what matches:\n%s", got, pattern)
	}
}

func TestSkippedTestsAreListedWithTheirReasons(t *testing.T) {
	said, r := run(t, somePasses)
	wants(t, said, `^ok  \tsome\t[0-9.]+s\nskipped tests, 2:\n  some TestSkipped: some_test.go:4: needs root\n  some TestParts/one: some_test.go:5: needs two\n$`)
	record := filepath.Join(t.TempDir(), "record")
	if err := r.append(record); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	wants(t, string(data), `^ran some TestRuns\nran some TestParts\nskip some TestSkipped some_test.go:4: needs root\nskip some TestParts/one some_test.go:5: needs two\n$`)
}

func TestFailuresAreToldAsGoTestTellsThem(t *testing.T) {
	said, _ := run(t, "package some\nimport \"testing\"\nfunc TestBad(t *testing.T) { t.Error(\"no good\") }\nfunc TestGood(t *testing.T) {}\n")
	wants(t, said, `^--- FAIL: TestBad \([0-9.]+s\)\n    some_test.go:3: no good\nFAIL\nFAIL\tsome\t[0-9.]+s\n$`)
	said, _ = run(t, "package some\nimport \"testing\"\nfunc TestPanics(t *testing.T) { panic(\"at the disco\") }\n")
	wants(t, said, `(?s)--- FAIL: TestPanics.*panic: at the disco.*some_test.go:3.*FAIL\tsome\t`)
	said, _ = run(t, "package some\nimport \"os\"\nimport \"testing\"\nfunc TestLeaves(t *testing.T) { println(\"bye\"); os.Exit(3) }\n")
	wants(t, said, `(?s)bye.*FAIL\tsome\t`)
	said, _ = run(t, "package some\nthis is no Go\n")
	wants(t, said, `(?s)some_test.go:2:1: .*FAIL\tsome \[setup failed\]|(?s)some_test.go:2:1: .*FAIL\tsome \[build failed\]`)
}

func TestAnOutputThatEndsEarlyIsAFailure(t *testing.T) {
	if err := newReport(new(strings.Builder)).read(strings.NewReader(`{"Action":"start","Package":"some"}` + "\n")); err == nil {
		t.Error("no error")
	}
}
