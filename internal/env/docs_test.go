package env

import (
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
	if !strings.Contains(string(page), Markdown()) {
		t.Errorf("docs/environment.md has not the table of environment variables as it is now:\n%s", Markdown())
	}
}
