package env

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// Users read the table in docs/environment.md.
func TestDocsHaveTheTable(t *testing.T) {
	page, err := os.ReadFile("../../docs/environment.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), markdown()) {
		t.Errorf("docs/environment.md has not the table of environment variables as it is now:\n%s", markdown())
	}
}

// markdown renders the table as docs/environment.md shows it.
func markdown() string {
	var b strings.Builder
	b.WriteString("| variable | default | read by | meaning |\n|---|---|---|---|\n")
	for _, v := range Table() {
		def := v.Default
		if def == "" {
			def = "unset"
		}
		if v.Set {
			def = "set by gompirun"
			if v.Default != "" {
				def = "set by gompirun when unset: " + v.Default
			}
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", v.Name, def, v.Reader, v.Doc)
	}
	return b.String()
}
