package remote

import (
	"os"
	"strings"
	"sync"
	"time"
)

// words keeps the end of what a process says on its standard error.
type words struct {
	from *os.File
	done chan struct{} // closed at the end

	mu   sync.Mutex
	tail []byte
}

const (
	maxWords = 4 << 10
	// wordsTime is how long the end of them is awaited, once the process has
	// ended: something that it started may keep the pipe open.
	wordsTime = 200 * time.Millisecond
)

// listen keeps what comes, until its end.
func (w *words) listen() {
	defer close(w.done)
	buf := make([]byte, maxWords)
	for {
		n, err := w.from.Read(buf)
		w.mu.Lock()
		w.tail = append(w.tail, buf[:n]...)
		w.tail = w.tail[max(0, len(w.tail)-maxWords):]
		w.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// await returns what the process has said. It has ended.
func (w *words) await() string {
	select {
	case <-w.done:
	case <-time.After(wordsTime):
	}
	w.from.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.tail)
}

// lastWords returns the last line of text that says why something failed,
// after lead; nothing if there is none.
func lastWords(text, lead string) string {
	lines := strings.Split(text, "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		line := strings.TrimSpace(lines[i])
		if line != "" && !idle(line) {
			return lead + line
		}
	}
	return ""
}

// idle reports whether a line of ssh or srun is one that says nothing of a
// failure.
func idle(line string) bool {
	return strings.HasPrefix(line, "Warning: Permanently added") || strings.HasSuffix(line, "lacks support for cpu binding")
}
