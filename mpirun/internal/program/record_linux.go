package program

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Records are the files with the failures of a host's ranks. A Python script with torch's @record
// on its main function writes a message, the stack and the time to the file named by
// TORCHELASTIC_ERROR_FILE, and a crash in C its registers and stack (internal/guest/shim/signals.c,
// which knows the beginning of the names).
type Records struct{ prefix string }

// NewRecords returns files in dir. The default is a folder in memory, which answers at once. The
// names are secret from other users, so that no folder has to be made before a rank fails.
func NewRecords(dir string) Records {
	if dir == "" {
		if dir = "/dev/shm"; unix.Access(dir, unix.W_OK) != nil {
			dir = os.TempDir()
		}
	}
	return Records{filepath.Join(dir, "gompi-error-"+rand.Text())}
}

// File returns the file of the i-th rank of the host.
func (r Records) File(i int) string { return fmt.Sprintf("%s-%d.json", r.prefix, i) }

// Remove removes the files of the first n ranks.
func (r Records) Remove(n int) {
	for i := range n {
		unix.Unlink(r.File(i))
	}
}

// Take removes and returns the record of the i-th rank. It does not block, even if the file is a
// FIFO or a link.
func (r Records) Take(i int) (Record, bool) {
	fd, err := unix.Open(r.File(i), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return Record{}, false
	}
	f := os.NewFile(uintptr(fd), "")
	defer f.Close()
	unix.Unlink(r.File(i))
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return Record{}, false
	}
	data, err := io.ReadAll(io.LimitReader(f, maxRecord))
	if err != nil {
		return Record{}, false
	}
	if bytes.HasPrefix(data, []byte("crash 1\x00")) {
		return Record{Stack: string(data)}, true
	}
	record := readRecord(data)
	if written := info.ModTime().UnixNano(); record.Before == 0 || written < record.Before {
		record.Before = written
	}
	return record, record.Message != ""
}

const (
	maxRecord  = 1 << 20 // bytes read of such a file
	maxMessage = 300     // bytes of its message that the user sees
)

// A Record is a rank's own record of its failure.
type Record struct {
	Message string // its first line
	Stack   string // of a crash in C, which has no message, for proc.CrashFrames
	Before  int64  // upper bound of the failure's time, nanoseconds since 1970
}

// more marks a shortened message.
const more = " ..."

// IsIn reports whether text contains the message.
func (r *Record) IsIn(text []byte) bool {
	return bytes.Contains(text, []byte(strings.TrimSuffix(r.Message, more)))
}

// readRecord reads a file of @record: {"message": {"message": M, "extraInfo": {"py_callstack": S,
// "timestamp": T}}}, or {"message": M, "timestamp": T}, which PyTorch's documentation also shows.
func readRecord(data []byte) (r Record) {
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
	if r.Message = strings.TrimSpace(line); len(r.Message) > maxMessage {
		r.Message, rest = strings.ToValidUTF8(r.Message[:maxMessage], ""), more
	}
	if rest != "" {
		r.Message += more
	}
	if r.Stack = full.Message.Extra.Stack; r.Stack == "" {
		r.Stack = message
	}
	if seconds, err := strconv.ParseFloat(fmt.Sprint(time), 64); err == nil && seconds > 0 && seconds < 1<<32 {
		r.Before = int64(seconds+1) * 1e9 // whole seconds, rounded down
	}
	return r
}
