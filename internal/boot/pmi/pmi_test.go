package pmi

import (
	"reflect"
	"strings"
	"testing"

	"gompi/internal/boot/wire"
)

func TestParseReadsWhatLaunchersWrite(t *testing.T) {
	tests := []struct {
		line string
		want *Command
	}{
		{"cmd=barrier_out rc=0\n", New("barrier_out", "rc", "0")},
		{"cmd=maxes rc=0 kvsname_max=256  keylen_max=64 vallen_max=1024",
			New("maxes", "rc", "0", "kvsname_max", "256", "keylen_max", "64", "vallen_max", "1024")},
		// MPICH's hydra 4.1 and 4.2 add a word that breaks clients which take the rest of the line.
		{"cmd=get_result rc=0 value=a=b,(c) found=TRUE\n",
			New("get_result", "rc", "0", "value", "a=b,(c)", "found", "TRUE")},
		{"cmd=abort exitcode=13 message=no disk here", New("abort", "exitcode", "13", "message", "no disk here")},
		{"cmd=get_result value=\r\n", New("get_result", "value", "")},
		{"cmd=finalize", New("finalize")},
	}
	for _, tt := range tests {
		if got, err := Parse([]byte(tt.line)); err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("Parse(%q) = %+v, %v; want %+v", tt.line, got, err, tt.want)
		}
	}
	for _, line := range []string{"", "  \n", "hello", "cmd=", "rc=0 cmd=x", "cmd=x stray", "cmd=x =1",
		"000012cmd=fullinit;"} {
		if m, err := Parse([]byte(line)); err == nil {
			t.Errorf("Parse(%q) = %+v, want an error", line, m)
		}
	}
}

func TestNoLineHasAnEmptyValueOrABlankInOne(t *testing.T) {
	got := string(New("abort", "exitcode", "3", "empty", "", "message", "no disk\nat all").Append(nil))
	if want := "cmd=abort exitcode=3 message=no_disk_at_all\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestErrorsAreResultCodes(t *testing.T) {
	for line, want := range map[string]string{
		"cmd=get_result rc=0 value=x": "",
		"cmd=get_result value=x":      "",
		"cmd=get_result rc=1 msg=no":  "get_result: no",
		"cmd=barrier_out rc=-1":       "barrier_out: result code -1",
	} {
		m, err := Parse([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if m.Err() != nil {
			got = m.Err().Error()
		}
		if got != want {
			t.Errorf("%q: error %q, want %q", line, got, want)
		}
	}
}

func TestLinesAreBounded(t *testing.T) {
	var l Lines
	for range MaxLine + 1 {
		l.Add([]byte("x"))
	}
	if line, ok, err := l.Next(); err == nil {
		t.Errorf("a line of %d bytes: %.10q, %v; want an error", MaxLine+1, line, ok)
	}
}

func TestMappingIsWhatMPICHReads(t *testing.T) {
	tests := []struct {
		nodeOf []int
		want   string
	}{
		{[]int{0}, "(vector,(0,1,1))"},
		{[]int{0, 0, 0, 0, 1, 1, 1, 1}, "(vector,(0,2,4))"},
		{[]int{0, 1, 0, 1}, "(vector,(0,2,1),(0,2,1))"},
		{[]int{0, 0, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3}, "(vector,(0,2,2),(2,2,4))"},
		{[]int{1, 1, 0}, "(vector,(1,1,2),(0,1,1))"},
	}
	for _, tt := range tests {
		if got := Mapping(wire.Runs(tt.nodeOf)); got != tt.want {
			t.Errorf("Mapping(%v) = %q, want %q", tt.nodeOf, got, tt.want)
		}
	}
	zigzag := make([]int, 4000)
	for i := range zigzag {
		zigzag[i] = i * 7 % 10
	}
	if got := Mapping(wire.Runs(zigzag)); got != "" {
		t.Errorf("a mapping of %d bytes: want none, it fits no value", len(got))
	}
}

func FuzzParse(f *testing.F) {
	for _, line := range []string{
		"cmd=init pmi_version=1 pmi_subversion=1", "cmd=put kvsname=kvs_1 key=P0 value=description#n$port#4$",
		"cmd=get_result rc=0 value=(vector,(0,2,2)) found=TRUE", "mcmd=spawn", "cmd=abort exitcode=1 message=a b c",
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		m, err := Parse(line)
		if err != nil {
			return
		}
		once := m.Append(nil)
		if strings.Count(string(once), "\n") != 1 {
			t.Fatalf("%q became more than one line: %q", line, once)
		}
		again, err := Parse(once)
		if err != nil || again.Cmd != m.Cmd {
			t.Fatalf("%q came back as %+v, %v", once, again, err)
		}
		if twice := again.Append(nil); string(twice) != string(once) {
			t.Fatalf("%q came back as %q", once, twice)
		}
	})
}

func FuzzLines(f *testing.F) {
	f.Add([]byte("cmd=init\ncmd=finalize\n"), uint8(3))
	f.Fuzz(func(t *testing.T, stream []byte, piece uint8) {
		var l Lines
		var got []byte
		n := int(piece) + 1
		for rest := stream; len(rest) > 0; rest = rest[min(n, len(rest)):] {
			l.Add(rest[:min(n, len(rest))])
			for {
				line, ok, err := l.Next()
				if err != nil {
					return
				}
				if !ok {
					break
				}
				got = append(append(got, line...), '\n')
			}
		}
		if !strings.HasPrefix(string(stream), string(got)) {
			t.Fatalf("lines %q of %q", got, stream)
		}
	})
}
