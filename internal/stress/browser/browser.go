// Package browser shows pages to Chromium, for tests of their layout.
package browser

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"testing"
	"time"

	"gompi/internal/stress"
)

// Load returns a page as HTML after its onload has run. It skips the test where there is no Chromium.
func Load(t *testing.T, page string) string {
	t.Helper()
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("needs chromium")
	}
	stress.Slow(t, "a browser takes seconds")
	dir, err := os.MkdirTemp("", "browser")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir) // processes of the browser may still write there
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, page)
	}))
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir="+dir,
		"--dump-dom", server.URL)
	cmd.Env, cmd.WaitDelay = append(os.Environ(), "HOME="+dir), 10*time.Second
	out, err := cmd.Output()
	if len(out) == 0 {
		t.Fatalf("%s: %v", cmd, err)
	}
	return string(out)
}
