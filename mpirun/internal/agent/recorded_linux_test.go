package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gompi/mpirun/internal/ctl"
)

func TestRecordsOfFailuresAreRead(t *testing.T) {
	long := strings.Repeat("x", 400)
	for text, want := range map[string]record{
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
		if r := readRecord(data); len(r.message) > maxMessage+len(more) || strings.Contains(r.message, "\n") || r.before < 0 {
			t.Errorf("%q: %+v", data, r)
		}
	})
}

// Whatever is at the place of the file, the agent does not wait for it, and it is gone afterwards.
func TestTheEndOfARankHasItsRecord(t *testing.T) {
	const text = `{"message": {"message": "E: no data", "extraInfo": {"py_callstack": "frames\nE: no data\n"}}}`
	write := func(path string) error { return os.WriteFile(path, []byte(text), 0o600) }
	for name, tt := range map[string]struct {
		make     func(path string) error
		code     int
		recorded string
		tail     string
	}{
		"a record":            {write, 1, "E: no data", "frames\nE: no data\n"},
		"nothing":             {func(string) error { return nil }, 1, "", "its stderr"},
		"of one that is well": {write, 0, "", "its stderr"},
		"a fifo":              {func(path string) error { return unix.Mkfifo(path, 0o600) }, 1, "", "its stderr"},
		"a link":              {func(path string) error { return os.Symlink("/etc/passwd", path) }, 1, "", "its stderr"},
	} {
		t.Run(name, func(t *testing.T) {
			a := &agent{errors: filepath.Join(t.TempDir(), "e"), local: map[int]int{}}
			p := a.add(ctl.Rank{Rank: 3})
			if err := tt.make(a.errorFile(p)); err != nil {
				t.Fatal(err)
			}
			now := time.Now().Add(time.Second).UnixNano()
			m := &ctl.Exited{Code: tt.code, Time: now, Tail: []byte("its stderr")}
			a.takeRecord(p, m)
			if m.Recorded != tt.recorded || string(m.Tail) != tt.tail || (m.Time < now) != (tt.recorded != "") {
				t.Errorf("%+v, want %q, %q, and the time of the record", m, tt.recorded, tt.tail)
			}
			if a.removeErrorFiles(); exists(a.errorFile(p)) {
				t.Error("the file is left")
			}
		})
	}
	a := &agent{errors: filepath.Join(t.TempDir(), "e"), local: map[int]int{}}
	p := a.add(ctl.Rank{})
	m := &ctl.Exited{Signal: 6, Tail: []byte("frames\nE: no data, said by itself\n")}
	if err := write(a.errorFile(p)); err != nil {
		t.Fatal(err)
	}
	if a.takeRecord(p, m); string(m.Tail) != "frames\nE: no data, said by itself\n" {
		t.Errorf("the end of stderr, which has the message, is replaced by %q", m.Tail)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
