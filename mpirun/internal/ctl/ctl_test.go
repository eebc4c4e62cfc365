package ctl

import (
	"bytes"
	"errors"
	"io"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"gompi/internal/boot/wire"
	"gompi/internal/stats"
)

// examples holds at least one message of every kind.
func examples() []Message {
	return []Message{
		&Hello{Version: "1", Host: "h", Machine: "m", Network: "m n", Port: 65535, Address: "10.0.0.1",
			Launcher: "fd00::1", Addresses: []netip.Prefix{netip.MustParsePrefix("10.1.2.3/16")},
			Cores: [][]int{{0, 8}, {1}}, Numa: [][]int{{0, 1, 8}}, L3: [][]int{{0, 1}, {8}},
			Packages: [][]int{{0}, {1, 8}}, Quota: 3},
		&Hello{},
		&Started{PIDs: []int{1, 1 << 22}, CPUs: [][]int{{0}, nil}},
		&Failed{Rank: 3, Code: 127, Text: "not found"},
		&Output{Rank: 1, Stream: Stderr, Data: []byte("line\n")},
		&Consumed{Bytes: 9},
		&Cards{Data: [][]byte{{1}, {}}},
		&FromRank{Rank: 1, Time: 1753, Frame: wire.Append(nil, &wire.Revoke{Comm: 1 << 63, Cause: []byte("c")})},
		NewToRanks(&wire.Left{Rank: 5}),
		&Replace{Rank: 9, Original: 1, Invite: wire.Invite{Comm: 1, Seq: 2,
			Members: []wire.Span{{First: 0, Count: 4}}}},
		&Brief{Rank: 9, Frames: wire.Append(wire.Append(nil, &wire.Cards{}), &wire.Died{Rank: 1, Text: "was killed"})},
		&NoMore{},
		figures(),
		&Events{Rank: 1, Events: []stats.Event{{Begin: 5, Duration: 3, Site: 0, Peer: -1, Tag: 7, Bytes: 8}}},
		&Alone{Rank: 2, PID: 78, Why: "uses Open MPI", Sure: true},
		&Exited{Rank: 1, PID: 77, Code: 3, Time: 5, Joined: true, Core: true, NoMemory: true, RSS: 1 << 40,
			Tail: []byte("tail"), Recorded: "ValueError: x"},
		&Exited{Rank: 1, PID: 77, Signal: 9, Closed: true, MPI: true, Tail: []byte{}},
		&Doing{Ranks: []RankDoing{
			{Rank: 1, PID: 77, Text: "is in barrier() number 3", Site: "a/b.go:7", Since: time.Second,
				In: Mark{1 << 63, 3}, Marks: []Mark{{1 << 63, 3}, {0, 1}}},
			{Rank: 2, Details: "process 77\nwrote",
				Counts: Counts{Recorded: 1, Stats: true, Total: figures().Sites[0].Counts}},
		}, Counts: true, GPUs: []byte("{}")},
		&Stalled{On: true, Since: time.Minute},
		&Stalled{},
		&Ping{Sent: -1},
		&Pong{Sent: 1 << 60, Now: 2},
		&Drained{Killed: 2},
		&Note{Text: "n"},
		&Want{Item: 1, Offset: 1 << 33},
		&Piece{Data: []byte("\x7fELF")},
		&Nudge{},
		&Layout{Placement: []wire.Run{{Node: 0, Count: 2}, {Node: 1, Count: 2}}, Hosts: []string{"a", "b"}},
		&Launch{
			JobID: "id", Secret: [32]byte{3}, Size: 4, Node: 1, Nodes: 2, MasterAddr: "127.0.0.1", MasterPort: 1024,
			Remote: true, Dir: "/tmp", Window: 1 << 20, StallWarning: time.Second, Heartbeat: 2, Stacks: true,
			Stdin: StdinAll, Bindings: true, Merge: true, Recover: true, KeepChildren: true, Srun: true, Spares: 3,
			Cores: 2, MPILib: "own", MPIFolder: "/opt/gompi/lib",
			Env:   []string{"A=b", "EMPTY="},
			Files: []File{{Name: "data", Sum: "ff", Size: 9, Mode: 0o640}},
			MPI:   []File{{Name: "openmpi/libmpi.so.40", Sum: "fe", Size: 8, Mode: 0o700}},
			Programs: []Program{{Argv: []string{"p", ""}, Env: []string{"X=y"}, Wdir: "/", Sum: "ab12", Size: 1 << 40},
				{Argv: []string{"q"}}},
			Ranks: []Rank{{Rank: 2, Program: 1, CPUs: []int{0, 3}, GPUs: "0,MIG-1"}, {Rank: 3}},
		},
		&Input{Data: []byte("in")},
		&Input{Data: []byte{}},
		&Credit{Bytes: 1 << 20},
		&Signal{Number: 10},
		&Ask{},
		&Ask{Stacks: []int{0, 7}},
		&Stacks{Rank: 7, Text: "goroutine 1 [select]:"},
		&Gathered{Frame: wire.Append(nil, &wire.Cards{Data: [][]byte{[]byte("a"), []byte("b")}})},
		&Absent{Rank: 2},
		&Terminate{Interrupt: time.Second, Delay: 2 * time.Second, Text: "end"},
		&FindGPUs{},
		&GPUs{Found: []byte("{}"), Visible: "0,1", Limited: true},
		&Fence{Puts: []string{"key", "value"}},
		&Fenced{},
		&Examine{Secret: [32]byte{7}, PortLow: 5000, PortHigh: 5010, Interfaces: "eth0,^docker0",
			Env: []string{"PATH=/bin"}, Dir: "/home/u", Remote: true},
		&Findings{
			Received: -1, Sent: 1 << 60, Port: 4711, Trouble: "t", Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24")},
			Interfaces: []Interface{{Name: "eth0", Addresses: []string{"10.0.0.1/24", "fd00::1/64"}, MTU: 9001,
				Megabits: 25000}, {Name: "lo"}},
			MilliCPUs: 1500, Memory: 1 << 40, MemoryFree: 1, MemoryLimit: Unlimited, Shm: 64 << 20, Memlock: 8 << 20,
			Files: 1024, FilesHard: Unlimited,
			Processor: "GenuineIntel 6/143", Tuning: "shm.read=32k",
			PtraceScope: 2,
			UCX:         "/usr/lib/libucp.so.0", MPI: "MPICH", Python: Python{"/usr/bin/python3", "3.11.2", "2.6.0+cpu", "0.1.0"},
			RDMA: []RDMAPort{{"mlx5_0:1", "ACTIVE", "InfiniBand", "100 Gb/sec (4X EDR)", "fe80::1", 1}},
		},
		&Findings{MilliCPUs: Unlimited},
		&Reach{Peer: 3, Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.2/24")}, Port: 4711, Limit: time.Second,
			Send: time.Millisecond},
		&Reached{Peer: 3, Trouble: "refused", Address: "10.0.0.2:4711", Interface: "eth0", RoundTrip: 1, Bytes: 1 << 30,
			Took: time.Second},
	}
}

// figures returns an example with all figures of a site.
func figures() *Figures {
	f := &Figures{Copies: 12e9, Figures: stats.Figures{Rank: 1, Begun: 5, Left: 9, Busy: 4, Uncounted: 1, Dropped: 2,
		Sites: []stats.Site{{Op: "send", Place: "a/b.go:1"}}, Peers: []stats.Peer{{Rank: 0, Messages: 3, Bytes: 24}}}}
	for i := range f.Sites[0].Numbers() {
		f.Sites[0].Numbers()[i] = int64(i + 7)
	}
	return f
}

func stream(ms []Message) []byte {
	b := []byte(Magic)
	for _, m := range ms {
		b = Append(b, m)
	}
	return b
}

func TestExamplesCoverEveryKind(t *testing.T) {
	seen := map[byte]bool{}
	for _, m := range examples() {
		seen[Append(nil, m)[4]] = true
	}
	for kind := byte(1); ; kind++ {
		if _, err := protocol.Parse(kind, nil); err != nil && strings.Contains(err.Error(), "unknown kind") {
			break
		}
		if !seen[kind] {
			t.Errorf("no example of kind %d", kind)
		}
	}
}

func TestReaderGivesBackWhatWasWritten(t *testing.T) {
	all := stream(examples())
	readers := map[string]io.Reader{
		"whole":        bytes.NewReader(all),
		"byte by byte": iotest.OneByteReader(bytes.NewReader(all)),
		"data and EOF": iotest.DataErrReader(bytes.NewReader(all)),
	}
	for name, r := range readers {
		reader := NewReader(r)
		for i, want := range examples() {
			got, err := reader.Next()
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("%s: message %d = %+v, %v; want %+v", name, i, got, err, want)
			}
		}
		if m, err := reader.Next(); err != io.EOF {
			t.Errorf("%s: %v, %v at the end; want EOF", name, m, err)
		}
	}
}

func TestReaderSaysWhyThereIsNoAgent(t *testing.T) {
	whole := stream(examples()[:1])
	tests := []struct {
		name string
		in   []byte
		is   error
		want string
	}{
		{"nothing", nil, io.EOF, ""},
		{"magic cut short", whole[:len(Magic)-1], io.ErrUnexpectedEOF, ""},
		{"another version", []byte("\x00gompi agent 0\n"), nil, "agent 0"},
		{"cut short", whole[:len(whole)-1], io.ErrUnexpectedEOF, ""},
		{"other language", append([]byte(Magic), 1, 0, 0, 0, 99), wire.ErrFrame, "unknown kind 99"},
		{"garbage", append([]byte(Magic), 0xff, 0xff, 0xff, 0xff, 0xff), wire.ErrFrame, "length"},
	}
	for _, tt := range tests {
		m, err := NewReader(bytes.NewReader(tt.in)).Next()
		if err == nil || tt.is != nil && !errors.Is(err, tt.is) && !strings.Contains(err.Error(), tt.is.Error()) ||
			!strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, %v; want %v %q", tt.name, m, err, tt.is, tt.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, m := range examples() {
		frame := Append(nil, m)
		f.Add(frame[4], frame[5:])
	}
	f.Fuzz(func(t *testing.T, kind byte, body []byte) {
		m, err := protocol.Parse(kind, body)
		if err != nil {
			return
		}
		frame := Append(nil, m)
		again, err := protocol.Parse(frame[4], frame[5:])
		if err != nil || !reflect.DeepEqual(m, again) {
			t.Fatalf("%+v came back as %+v, %v", m, again, err)
		}
	})
}

func TestWaitingForTheRestOfAMessageIsReported(t *testing.T) {
	ms := examples()
	r := NewReader(iotest.HalfReader(bytes.NewReader(stream(ms))))
	waited := 0
	r.Waiting = func() { waited++ }
	for range ms {
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
	}
	if waited == 0 {
		t.Error("never told, though messages came in pieces")
	}
	waited = 0
	r = NewReader(bytes.NewReader(stream(ms[2:4])))
	r.Waiting = func() { waited++ }
	for range 2 {
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
	}
	if waited != 0 {
		t.Errorf("told %d times, though messages came whole", waited)
	}
}
