package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gompi/mpirun/internal/cmdline"
)

// With "-trace train.py 10" train.py is the trace.
func TestATraceReplacesTracesAlone(t *testing.T) {
	for _, content := range []string{"", `{"traceEvents":[]}`, "import torch\n"} {
		name := filepath.Join(t.TempDir(), "train.py")
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := Open(&cmdline.Stats{Trace: name}, &cmdline.Program{Argv: []string{"10"}}, 2)
		text, _ := os.ReadFile(name)
		if other := strings.HasPrefix(content, "i"); (err != nil) != other || other && string(text) != content || !other && len(text) > 0 {
			t.Errorf("%q: %v, then %q", content, err, text)
		}
	}
	if c, err := Open(&cmdline.Stats{Trace: "/dev/null"}, &cmdline.Program{Argv: []string{"x"}}, 2); err != nil || c == nil {
		t.Error(err)
	}
}
