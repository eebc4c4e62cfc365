package archtest

import (
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The layout of docs/design.md has one line for each package of both modules, and no other line but
// of folders that hold packages.
func TestDesignListsEveryPackage(t *testing.T) {
	var packages []string
	for _, p := range list(t, "CGO_ENABLED=1", "GOOS=linux") {
		packages = append(packages, p.ImportPath)
	}
	rows := layout(t)
	for _, p := range packages {
		if !slices.Contains(rows, p) {
			t.Errorf("the layout of docs/design.md has no line for %s: add one", p)
		}
	}
	for i, name := range rows {
		folder, isFolder := strings.CutSuffix(name, "/")
		inFolder := func(p string) bool { return strings.HasPrefix(p, folder+"/") }
		switch {
		case slices.Contains(rows[:i], name):
			t.Errorf("the layout of docs/design.md has two lines for %s: want one", name)
		case isFolder && slices.Contains(packages, folder):
			t.Errorf("the layout of docs/design.md calls the package %s a folder: take the slash away", folder)
		case isFolder && !slices.ContainsFunc(packages, inFolder), !isFolder && !slices.Contains(packages, name):
			t.Errorf("the layout of docs/design.md has a line for %s, which does not exist: delete it", name)
		}
	}
}

// layout returns the paths in the layout of docs/design.md. An indented line is below the last line
// with less indentation. The paths of folders end in a slash.
func layout(t *testing.T) (rows []string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/design.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Layout\n")
	_, block, _ := strings.Cut(section, "\n\n    ")
	block, _, _ = strings.Cut("    "+block, "\n\n")
	row := regexp.MustCompile(`^((?:  ){2,})(\S+) +\S`)
	above := []string{path.Dir(path.Dir("gompi/internal/archtest"))} // the module, which make rename may rename
	for line := range strings.Lines(block) {
		m := row.FindStringSubmatch(line)
		if m == nil || len(m[1])/2-1 > len(above) || len(strings.TrimRight(line, "\n")) > 100 {
			t.Errorf("docs/design.md: %q: want a name below the one above and a text, in 100 columns", line)
			continue
		}
		above = above[:len(m[1])/2-1]
		name := path.Join(above[len(above)-1], m[2])
		above = append(above, name)
		if strings.HasSuffix(m[2], "/") {
			name += "/"
		}
		rows = append(rows, name)
	}
	return rows
}
