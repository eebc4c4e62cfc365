package program

import (
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestRecordsOfFailuresAreRead(t *testing.T) {
	long := strings.Repeat("x", 400)
	for text, want := range map[string]Record{
		// torch 2.15
		`{"message": {"message": "ValueError: no data", "extraInfo": {"py_callstack": "Traceback\nValueError: no data\n", "timestamp": "1700000000"}}}`: {
			"ValueError: no data", "Traceback\nValueError: no data\n", 1700000001e9},
		`{"message": {"message": "RuntimeError: a\nb", "extraInfo": {"timestamp": 1700000000.5}, "errorCode": 3}}`: {"RuntimeError: a ...", "RuntimeError: a\nb", 1700000001e9},
		`{"message": "killed", "timestamp": 1700000000}`:                                                           {"killed", "killed", 1700000001e9},
		`{"message": {"message": "` + long + `"}}`:                                                                 {long[:maxMessage] + " ...", long, 0},
		`{"message": {"message": "x", "extraInfo": {"timestamp": "soon"}}}`:                                        {"x", "x", 0},
		`{"message": {"message": "x", "extraInfo": {"timestamp": 1e300}}}`:                                         {"x", "x", 0},
		`{"message": 7}`: {}, `{"message": {"mess`: {}, ``: {}, `[]`: {}, `null`: {},
	} {
		if got := readRecord([]byte(text)); got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
}

func FuzzReadRecord(f *testing.F) {
	f.Add([]byte(`{"message": {"message": "a\nb", "extraInfo": {"py_callstack": "s", "timestamp": "1"}}}`))
	f.Add([]byte(`{"message": "a", "timestamp": -1e999}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if r := readRecord(data); len(r.Message) > maxMessage+len(more) || strings.Contains(r.Message, "\n") ||
			r.Before < 0 {
			t.Errorf("%q: %+v", data, r)
		}
	})
}

// Whatever is at the place of the file, it is not waited for, and is gone afterwards.
func TestARecordIsTaken(t *testing.T) {
	const text = `{"message": {"message": "E: no data", "extraInfo": {"py_callstack": "frames\nE: no data\n"}}}`
	for name, tt := range map[string]struct {
		make func(path string) error
		want bool
	}{
		"a record": {func(path string) error { return os.WriteFile(path, []byte(text), 0o600) }, true},
		"nothing":  {func(string) error { return nil }, false},
		"a fifo":   {func(path string) error { return unix.Mkfifo(path, 0o600) }, false},
		"a link":   {func(path string) error { return os.Symlink("/etc/passwd", path) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			records := NewRecords(t.TempDir())
			if err := tt.make(records.File(3)); err != nil {
				t.Fatal(err)
			}
			r, ok := records.Take(3)
			if ok != tt.want || ok && (r.Message != "E: no data" || r.Stack != "frames\nE: no data\n" ||
				r.Before > time.Now().UnixNano()) {
				t.Errorf("%v %+v, want %v, and the time of the file", ok, r, tt.want)
			}
			records.Remove(4)
			if _, err := os.Lstat(records.File(3)); err == nil {
				t.Error("the file is left")
			}
		})
	}
	records := NewRecords(t.TempDir())
	const crash = "crash 1\x00and so on"
	if err := os.WriteFile(records.File(1), []byte(crash), 0o600); err != nil {
		t.Fatal(err)
	}
	if r, ok := records.Take(1); !ok || r.Message != "" || r.Stack != crash {
		t.Errorf("%v %+v, want a crash without a message", ok, r)
	}
	if err := os.WriteFile(records.File(1), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	records.Remove(2)
	if _, err := os.Lstat(records.File(1)); err == nil {
		t.Error("a file is left that was not taken")
	}
}
