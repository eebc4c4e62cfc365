package agent

import (
	"os"
	"testing"
	"time"

	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/program"
)

func TestTheEndOfARankHasItsRecord(t *testing.T) {
	const text = `{"message": {"message": "E: no data", "extraInfo": {"py_callstack": "frames\nE: no data\n"}}}`
	for name, tt := range map[string]struct {
		end      ctl.Exited
		recorded string
		tail     string
	}{
		"failed": {ctl.Exited{Code: 1, Tail: []byte("its stderr")}, "E: no data", "frames\nE: no data\n"},
		"well":   {ctl.Exited{Tail: []byte("its stderr")}, "", "its stderr"},
		"says so by itself": {ctl.Exited{Signal: 6, Tail: []byte("frames\nE: no data, said by itself\n")}, "E: no data",
			"frames\nE: no data, said by itself\n"},
	} {
		t.Run(name, func(t *testing.T) {
			a := &agent{records: program.NewRecords(t.TempDir()), local: map[int]int{}}
			p, m := a.add(ctl.Rank{Rank: 3}), tt.end
			if err := os.WriteFile(a.records.File(p.index), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			now := time.Now().Add(time.Second).UnixNano()
			m.Time = now
			crash := a.addRecord(p, &m)
			if crash != "" || m.Recorded != tt.recorded || string(m.Tail) != tt.tail || (m.Time < now) != (tt.recorded != "") {
				t.Errorf("%+v, want %q, %q, and the time of the record", m, tt.recorded, tt.tail)
			}
			if _, err := os.Lstat(a.records.File(p.index)); err == nil {
				t.Error("the file is left")
			}
		})
	}
}
