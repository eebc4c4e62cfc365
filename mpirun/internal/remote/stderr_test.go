package remote

import (
	"os"
	"strings"
	"testing"
	"time"
)

// Output of an ended process counts even if this process could not read it in time, and another
// process with the pipe open may write more.
func TestWordsAreReadHoweverLateItIs(t *testing.T) {
	for _, output := range []string{"", "ssh: connect to host a port 22: Connection refused\n",
		strings.Repeat("many words\n", 3000) + "the last\n"} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		if _, err := w.WriteString(output); err != nil {
			t.Fatal(err)
		}
		late := &stderrTail{from: r, done: make(chan struct{})}
		r.SetReadDeadline(time.Now()) // as await does
		late.readAll()
		if got, want := late.await(), output[max(0, len(output)-maxStderr):]; got != want {
			t.Errorf("%d bytes that end in %q, want %d that end in %q", len(got), lastLines(got, ""), len(want),
				lastLines(want, ""))
		}
	}
}
