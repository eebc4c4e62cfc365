package env

import (
	"os"
	"strings"
	"testing"
)

// README's table is this package's, to the letter: gompirun's users read it
// there.
func TestReadmeHasTheTable(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), Markdown()) {
		t.Errorf("README.md has not the table of environment variables as it is now:\n%s", Markdown())
	}
}
