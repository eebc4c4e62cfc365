package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Each test that a page of docs names exists. A row of docs/tested.md is one claim: at most 40
// words and three tests.
func TestDocsNameTests(t *testing.T) {
	tests := testNames(t)
	name := regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z0-9]\w+`)
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) < 20 {
		t.Fatalf("%d pages in docs: %v", len(pages), err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			named := name.FindAllString(line, -1)
			for _, n := range named {
				if !tests[n] {
					t.Errorf("%s names %s: there is no such test", filepath.Base(page), n)
				}
			}
			words := strings.Fields(strings.ReplaceAll(line, "|", " "))
			if filepath.Base(page) == "tested.md" && strings.HasPrefix(line, "|") &&
				(len(words) > 40 || len(named) > 3) {
				t.Errorf("docs/tested.md: want at most 40 words and three tests, not %d and %d, in the row %s",
					len(words), len(named), line)
			}
		}
	}
}

// testNames returns the names of all tests of the repository.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	test := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{"../../.git", "../../bin", "../../dist"}, path):
			return fs.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		for _, m := range test.FindAllStringSubmatch(string(text), -1) {
			names[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
