package agent

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"gompi/mpirun/internal/ctl"
)

// A Python script whose main function torch's @record decorates writes why it failed to the file
// that TORCHELASTIC_ERROR_FILE names: a message, the stack, and when that was.

// errorFiles returns what the names of such files begin with. No other user can guess it, so
// nothing is made there before a rank fails. Memory, unlike other folders, answers at once.
func errorFiles() string {
	dir := "/dev/shm"
	if unix.Access(dir, unix.W_OK) != nil {
		dir = os.TempDir()
	}
	return filepath.Join(dir, "gompi-error-"+rand.Text())
}

// errorFile returns where a rank is to write why it failed.
func (a *agent) errorFile(p *process) string { return fmt.Sprintf("%s-%d.json", a.errors, p.index) }

// removeErrorFiles removes what has been written after ranks had ended.
func (a *agent) removeErrorFiles() {
	for _, p := range a.ranks {
		unix.Unlink(a.errorFile(p))
	}
}

const (
	maxRecord  = 1 << 20 // bytes of such a file that are read
	maxMessage = 300     // bytes of its message that the user is shown
)

// takeRecord adds to m, the end of a rank that failed, what it has recorded of that. A rank may
// take long to end after it has failed, and others fail because of it meanwhile.
func (a *agent) takeRecord(p *process, m *ctl.Exited) {
	fd, err := unix.Open(a.errorFile(p), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	f := os.NewFile(uintptr(fd), "")
	defer f.Close()
	unix.Unlink(a.errorFile(p))
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || m.Code == 0 && m.Signal == 0 {
		return
	}
	data, err := io.ReadAll(io.LimitReader(f, maxRecord))
	if err != nil {
		return
	}
	r := readRecord(data)
	if m.Recorded = r.message; r.message == "" {
		return
	}
	m.Time = min(m.Time, info.ModTime().UnixNano(), cmp.Or(r.before, m.Time))
	if !bytes.Contains(m.Tail, []byte(strings.TrimSuffix(r.message, more))) {
		m.Tail = lastLines([]byte(r.stack), tailLines)
	}
}

// A record is what a rank has recorded of its failure.
type record struct {
	message string // its first line
	stack   string
	before  int64 // the failure was before that, nanoseconds since 1970; 0 if it does not say
}

// more follows what is cut from a message.
const more = " ..."

// readRecord reads a file of @record: {"message": {"message": M, "extraInfo": {"py_callstack": S,
// "timestamp": T}}}, or {"message": M, "timestamp": T} as PyTorch's documentation has it, too.
func readRecord(data []byte) (r record) {
	var full struct {
		Message struct {
			Message string
			Extra   struct {
				Stack string `json:"py_callstack"`
				Time  any    `json:"timestamp"`
			} `json:"extraInfo"`
		}
	}
	var short struct {
		Message string
		Time    any `json:"timestamp"`
	}
	message, time := "", any(nil)
	if json.Unmarshal(data, &full) == nil {
		message, time = full.Message.Message, full.Message.Extra.Time
	} else if json.Unmarshal(data, &short) == nil {
		message, time = short.Message, short.Time
	}
	line, rest, _ := strings.Cut(strings.TrimSpace(message), "\n")
	if r.message = strings.TrimSpace(line); len(r.message) > maxMessage {
		r.message, rest = strings.ToValidUTF8(r.message[:maxMessage], ""), more
	}
	if rest != "" {
		r.message += more
	}
	if r.stack = full.Message.Extra.Stack; r.stack == "" {
		r.stack = message
	}
	if seconds, err := strconv.ParseFloat(fmt.Sprint(time), 64); err == nil && seconds > 0 && seconds < 1<<32 {
		r.before = int64(seconds+1) * 1e9 // whole seconds, rounded down
	}
	return r
}
