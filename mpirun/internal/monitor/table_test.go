package monitor

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"gompi/cudaops/topo"
	"gompi/mpirun/internal/table"
)

func TestTable(t *testing.T) {
	jobs := []Job{
		{ID: "0197a3c2-0000-7000-8000-000011112222", PID: 12, Age: 123.4, Size: 4, Hosts: []string{"a", "b"},
			State:    Running,
			Programs: []string{"./a x", "./b"}, Lines: []string{"a: rank 0 is in no call"}},
		{ID: "x", PID: 3456, Age: 1.26, State: Stalled, Since: 61, Restarts: 2,
			Hosts:    []string{"a", "b", "c", "d", "e"},
			Programs: []string{"\x1b[31mevil\n"}, User: 7},
	}
	for range mostLines + 5 {
		jobs[1].Lines = append(jobs[1].Lines, "l\t")
	}
	want := `JOB       PROCESS  AGE   RANKS  HOSTS    STATE                        PROGRAM
11112222  12       2m3s  4      a,b      running                      ./a x : ./b
    a: rank 0 is in no call
x         3456     1.3s  0      5 hosts  stalled for 1m1s, restart 2  ?[31mevil?
` + strings.Repeat("    l?\n", mostLines) + "    and 5 more\n"
	if got := Table(jobs, false, 100); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got := Table(jobs, true, 100); !strings.Contains(got, "USER") || !strings.Contains(got, "  7 ") {
		t.Errorf("%s\nwant users", got)
	}
}

func TestTopShowsWhatRanksDoByTheSecond(t *testing.T) {
	before := Job{ID: "x", Age: 10, Ranks: []Rank{{Rank: 0, PID: 5, CPU: 1, Recorded: 10}, {Rank: 1, PID: 6}}}
	j := Job{ID: "x", Age: 12, Size: 3, State: Running, Ranks: []Rank{
		{Rank: 1, PID: 7, Doing: "has not called Init"}, // a new process
		{Rank: 0, PID: 5, CPU: 2.5, Recorded: 15, Resident: 2e6, Host: "h", Doing: "is in barrier()", Site: "a/b.go:3",
			Since: 3, Kept: "is stopped"},
	}}
	lines := strings.Split(Top(&j, &before, 100), "\n")
	if len(lines) != 6 || strings.Join(strings.Fields(lines[2]),
		" ") != "0 h 5 75 % 2 MB 2.5 3s barrier() at a/b.go:3; it is stopped" {
		t.Errorf("%q", lines)
	}
	if want := "1 7 - 0 B - - has not called Init"; strings.Join(strings.Fields(lines[3]), " ") != want {
		t.Errorf("%q, want %q of a rank that is new", lines[3], want)
	}
	j.Counts = true
	before.Ranks[0].Counts = &Counts{Calls: 100, Bytes: 1000, InCalls: 1}
	j.Ranks[1].Counts = &Counts{Calls: 400, Bytes: 5000, InCalls: 1.5}
	line := strings.Split(Top(&j, &before, 100), "\n")[2]
	if want := "0 h 5 75 % 2 MB 150 2 kB 25 % 3s barrier()"; !strings.HasPrefix(strings.Join(strings.Fields(line),
		" "), want) {
		t.Errorf("%q, want %q with -stats", line, want)
	}
	if strings.Contains(Top(&j, nil, 100), "%") {
		t.Error("rates are made of one look")
	}
}

func TestTopShowsGPUsByHost(t *testing.T) {
	busy := 0
	j := Job{ID: "x", Age: 1, Size: 1, State: Running, Ranks: []Rank{{Host: "b", PID: 1}},
		GPUs: map[string][]topo.Device{"b": {{Index: 3, Name: "H200\x1b", Memory: 141e9, Used: 70.5e9, Busy: &busy}},
			"a": {{Name: "L4"}}}}
	want := `HOST  GPU  NAME   BUSY  MEMORY   OF
a     0    L4     -     0 B      0 B
b     3    H200?  0 %   70.5 GB  141 GB
`
	if got := Top(&j, nil, 100); !strings.HasSuffix(got, want) {
		t.Errorf("%s\nwant at its end\n%s", got, want)
	}
}

func TestTablesOfJobsFitTheTerminal(t *testing.T) {
	long := strings.Repeat("MPI_Sendrecv(4 bytes from rank 2) ", 8)
	j := Job{ID: "x", Size: 3, State: Running, Why: long, Programs: []string{long}, Hosts: []string{"node1", "node2"},
		Lines: []string{long}, Ranks: []Rank{{Host: "node1", PID: 123456, Doing: long, Site: "a/b.go:3"}}}
	for _, width := range []int{80, 100} {
		for what, text := range map[string]string{"ps": Table([]Job{j}, true, width), "top": Top(&j, &j, width)} {
			for line := range strings.Lines(text) {
				if len(line)-1 > width {
					t.Errorf("%s: a line has %d columns, want at most %d:\n%s", what, len(line)-1, width, text)
				}
			}
		}
	}
}

// A job's own words reach a terminal as plain text only, because the job may be another user's.
func TestTextOfOthersIsPlain(t *testing.T) {
	const evil = "\x1b[2J\u009b\u202e\U000e0001\t\r\x7f\xff"
	var fill func(v reflect.Value)
	fill = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.String:
			v.SetString(evil)
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
			for i := range v.Len() {
				fill(v.Index(i))
			}
		case reflect.Struct:
			for i := range v.NumField() {
				fill(v.Field(i))
			}
		case reflect.Pointer:
			v.Set(reflect.New(v.Type().Elem()))
		}
	}
	var j Job
	fill(reflect.ValueOf(&j).Elem())
	j.ID = "a1" // the name of its socket
	jobs := []Job{j, j}
	inJSON, err := JSON(jobs)
	if err != nil {
		t.Fatal(err)
	}
	_, ambiguous := Choose(jobs, "")
	for what, text := range map[string]string{
		"ps": Table(jobs, true, 100), "top": Top(&j, &j, 100), "ps -json": string(inJSON),
		"ps -prometheus": string(Metrics(jobs)), "kill": ambiguous.Error(),
	} {
		if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
			t.Errorf("%s prints %q", what, text[i:min(len(text), i+20)])
		}
	}
	var back []Job
	if err := json.Unmarshal(inJSON, &back); err != nil || len(back) != 2 ||
		back[0].Programs[0] != strings.ToValidUTF8(evil, "\ufffd") {
		t.Errorf("%v, %+v in JSON, want %q", err, back, evil)
	}
}

func TestScreenHoldsWhatThereIsRoomFor(t *testing.T) {
	text := func(width int) string {
		return strings.Join(table.Lay([][]string{{"abc def"}, {"d"}}, width), "")
	}
	for height, lines := range map[int]string{2: "abc\x1b[K\n", 3: "abc\x1b[K\nd\x1b[K\n", 4: "abc\x1b[K\ndef\x1b[K\nd\x1b[K\n"} {
		if got, want := Screen(text, height, 3), "\x1b[H"+lines+"\x1b[J"; got != want {
			t.Errorf("%d lines: %q, want %q", height, got, want)
		}
	}
}
