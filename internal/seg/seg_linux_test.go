package seg

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/calls"
	"gompi/internal/mem"
	"gompi/internal/world"
)

func newSegment(t testing.TB, ranks ...world.Rank) *Segment {
	t.Helper()
	s, err := New(ranks)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// remap maps s a second time, as another process would.
func remap(t testing.TB, s *Segment) *Segment {
	t.Helper()
	fd, err := unix.Dup(s.FD())
	if err != nil {
		t.Fatal(err)
	}
	o, err := Attach(fd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	return o
}

func TestAttachSeesWhatTheAgentMade(t *testing.T) {
	s := newSegment(t, 3, 7, 1000)
	o := remap(t, s)
	if o.Ranks() != 3 || o.WorldRank(0) != 3 || o.WorldRank(2) != 1000 {
		t.Errorf("%d ranks, first %d, last %d; want 3, 3, 1000", o.Ranks(), o.WorldRank(0), o.WorldRank(2))
	}
	for rank, want := range map[world.Rank]world.LocalRank{3: 0, 7: 1, 1000: 2, world.None: -1, 0: -1,
		8: -1, 1001: -1} {
		if got, ok := o.LocalRank(rank); ok != (want >= 0) || ok && got != want {
			t.Errorf("rank %d is local rank %d, %v; want %d", rank, got, ok, want)
		}
	}
	before := o.Epoch()
	s.Bump()
	if got := o.Epoch(); got != before+1 {
		t.Errorf("epoch %d after a bump of %d", got, before)
	}
}

func TestSegmentIsClaimedAndCannotShrink(t *testing.T) {
	s := newSegment(t, make([]world.Rank, 40)...)
	area := AreaSize(40)
	rest := int64(area) + arenaSpace
	var st unix.Stat_t
	if err := unix.Fstat(s.FD(), &st); err != nil {
		t.Fatal(err)
	}
	if held := st.Blocks * 512; held < st.Size-rest || held > st.Size-rest+int64(area)/2 {
		t.Errorf("%d bytes are allocated, want all %d before the area, and not the area", held, st.Size-rest)
	}
	const part = 1 << 20
	if err := s.Claim(area-part, part); err != nil {
		t.Fatal(err)
	}
	before := st.Blocks
	if unix.Fstat(s.FD(), &st); (st.Blocks-before)*512 != part {
		t.Errorf("%d bytes were allocated by a claim of %d", (st.Blocks-before)*512, part)
	}
	s.Area()[area-1] = 1
	if err := s.Claim(area-part, part); err != nil || s.Area()[area-1] != 1 {
		t.Errorf("a second claim: %v, and the byte written is %d", err, s.Area()[area-1])
	}
	if err := unix.Ftruncate(s.FD(), 0); err != unix.EPERM {
		t.Errorf("truncate: %v, want %v", err, unix.EPERM)
	}
	if err := unix.Ftruncate(s.FD(), st.Size*2); err != nil {
		t.Errorf("grow: %v", err)
	}
}

func TestAttachRefusesOtherDescriptors(t *testing.T) {
	memfd := func(fill func(fd int)) int {
		fd, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
		if err != nil {
			t.Fatal(err)
		}
		fill(fd)
		return fd
	}
	seal := func(fd int) { // and make room for arenas
		var st unix.Stat_t
		unix.Fstat(fd, &st)
		unix.Ftruncate(fd, st.Size+arenaSpace)
		unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK)
	}
	pipe := make([]int, 2)
	if err := unix.Pipe2(pipe, unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pipe[1])
	whole := newSegment(t, 0, 1)
	tests := map[string]int{
		"closed":  1 << 19,
		"pipe":    pipe[0],
		"empty":   memfd(seal),
		"garbage": memfd(func(fd int) { unix.Pwrite(fd, []byte(strings.Repeat("x", 3*pageSize)), 0); seal(fd) }),
		"may shrink": memfd(func(fd int) {
			unix.Pwrite(fd, whole.mem, 0)
		}),
		"cut short": memfd(func(fd int) { unix.Pwrite(fd, whole.mem[:2*pageSize], 0); seal(fd) }),
		"other offsets": memfd(func(fd int) {
			unix.Pwrite(fd, whole.mem, 0)
			unix.Pwrite(fd, []byte{9}, 12) // ranks
			seal(fd)
		}),
	}
	for name, fd := range tests {
		if s, err := Attach(fd); err == nil {
			t.Errorf("%s: attached to a segment of %d ranks", name, s.Ranks())
		}
		unix.Close(fd)
	}
}

func TestArenasAreApartAndClaimed(t *testing.T) {
	s := newSegment(t, 0, 1, 2)
	o, n := remap(t, s), ArenaSize(3)
	for i := range world.LocalRank(3) {
		if len(s.Arena(i)) != n {
			t.Fatalf("arena %d has %d bytes, want %d", i, len(s.Arena(i)), n)
		}
		if err := s.ClaimArena(i, n-pageSize, pageSize); err != nil {
			t.Fatal(err)
		}
		s.Arena(i)[n-1] = byte(1 + i)
	}
	for i := range world.LocalRank(3) {
		if got := o.Arena(i)[n-1]; got != byte(1+i) {
			t.Errorf("arena %d ends with %d, want %d", i, got, 1+i)
		}
	}
	var st unix.Stat_t
	unix.Fstat(s.FD(), &st)
	before := st.Blocks
	if err := s.ClaimArena(1, 0, 10*pageSize); err != nil {
		t.Fatal(err)
	}
	if unix.Fstat(s.FD(), &st); (st.Blocks-before)*512 != int64(10*pageSize) {
		t.Errorf("%d bytes were allocated by a claim of %d", (st.Blocks-before)*512, 10*pageSize)
	}
}

func TestNewRefusesNoRanksAndTooMany(t *testing.T) {
	for _, n := range []int{0, MaxRanks + 1} {
		if s, err := New(make([]world.Rank, n)); err == nil {
			s.Close()
			t.Errorf("made a segment for %d ranks", n)
		}
	}
}

func TestRankJoinsOnceAndLeaves(t *testing.T) {
	s := newSegment(t, 0, 1)
	r, other := s.Rank(1), remap(t, s).Rank(1)
	if s.State(1) != Starting || s.PID(1) != 0 {
		t.Errorf("state %v, pid %d before joining", s.State(1), s.PID(1))
	}
	r.Leave()
	if s.State(1) != Starting {
		t.Errorf("state %v after leaving without having joined", s.State(1))
	}
	if !r.Join() || s.State(1) != Joined || s.PID(1) != os.Getpid() {
		t.Errorf("state %v, pid %d after joining", s.State(1), s.PID(1))
	}
	if other.Join() {
		t.Error("joined twice")
	}
	if r.CallsMPI(nil); !s.CallsMPI(1) || s.CallsMPI(0) || s.CameLate(1) {
		t.Errorf("MPI programs: rank 0 %v, 1 %v, late %v; want rank 1, which is not late", s.CallsMPI(0), s.CallsMPI(1),
			s.CameLate(1))
	}
	r.Leave()
	if s.State(1) != Closed || s.State(0) != Starting {
		t.Errorf("states %v, %v; want starting, closed", s.State(0), s.State(1))
	}
	s.SetEnded(1)
	if s.State(1) != Ended {
		t.Errorf("state %v, want ended", s.State(1))
	}
}

func TestRecorderShowsCallsInOrder(t *testing.T) {
	s := newSegment(t, 0, 1)
	r, reader := s.Rank(1), remap(t, s)
	a := r.BeginCall(&Call{Comm: 1 << 60, Kind: calls.Allreduce, Type: mem.F32, Op: mem.Sum, Peer: -1, Count: 1 << 40,
		Bytes: 1 << 42, Seq: 7})
	b := r.BeginCall(&Call{Comm: 9, Kind: calls.Bcast, Type: mem.U8, Peer: 3, Count: 5, Bytes: 5, Start: 77})
	r.EndCall(b)
	r.Stamp(a, 12345)
	want := []Recording{
		{1, Call{1 << 60, calls.Allreduce, calls.None, mem.F32, mem.Sum, -1, 1 << 40, 1 << 42, 12345, 7, 0, 0}, false},
		{2, Call{9, calls.Bcast, calls.None, mem.U8, mem.NoOp, 3, 5, 5, 77, 0, 0, 0}, true},
	}
	got := reader.Calls(1)
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("calls %+v, want %+v", got, want)
	}
	if n := len(reader.Calls(0)); n != 0 {
		t.Errorf("rank 0 has %d calls, want none", n)
	}
	if s := got[1].String(); s != "bcast(5 uint8, root 3)" {
		t.Errorf("call reads %q", s)
	}
	r.BeginCollective(9, what(calls.Reduce, mem.Opaque, mem.Custom, 3)|uint64(calls.Allreduce)<<24,
		mem.PackElements(7, 24), 168, 2)
	if c := reader.Calls(1)[2]; c.String() != "reduce(7 elements of 24 bytes, custom, root 3)" ||
		c.Of != calls.Allreduce {
		t.Errorf("call reads %q, part of %v", c, c.Of)
	}
}

func TestTheSiteIsThatOfOneCall(t *testing.T) {
	s := newSegment(t, 0, 1)
	r, reader := s.Rank(1), remap(t, s)
	a, b := r.BeginCall(&Call{Kind: calls.Barrier, Peer: -1}),
		r.BeginCall(&Call{Kind: calls.Recv, Type: mem.U8, Count: 2, Peer: 3, Seq: 9})
	if site := reader.Site(1, uint64(a)); site != "" {
		t.Errorf("site %q of a call that has none", site)
	}
	r.SetSite(a, "train/main.go:55")
	if site := reader.Site(1, uint64(a)); site != "train/main.go:55" {
		t.Errorf("site %q", site)
	}
	r.SetSite(b, strings.Repeat("long/", 50)+"main.go:7")
	if site := reader.Site(1, uint64(a)); site != "" {
		t.Errorf("site %q of a call that another took the place of", site)
	}
	if site := reader.Site(1, uint64(b)); !strings.HasSuffix(site, "long/main.go:7") || len(site) != noteWords*8 {
		t.Errorf("site %q: want the end of a long one", site)
	}
	for _, site := range []string{"train.py:31", ""} { // of whatever call
		r.SetSite(AnyCall, site)
		if got := reader.Site(1, uint64(a)); got != site {
			t.Errorf("site %q, want %q", got, site)
		}
	}
	if s := reader.Calls(1)[1].String(); s != "recv(2 uint8, rank 3, tag 9)" {
		t.Errorf("call reads %q", s)
	}
}

func TestWhyARankCannotLeaveIsNoted(t *testing.T) {
	s := newSegment(t, 0, 1)
	r, reader := s.Rank(1), remap(t, s)
	r.SetSite(r.BeginCall(&Call{Kind: calls.Barrier, Peer: -1}), "main.go:5")
	if why := reader.CannotLeave(1); why != "" {
		t.Errorf("%q of a rank that has not said so", why)
	}
	for _, why := range []string{"short", strings.Repeat("0123456789", 15)} {
		if r.CannotLeave(why); reader.CannotLeave(1) != why {
			t.Errorf("%q: want %q", reader.CannotLeave(1), why)
		}
	}
}

func TestTheNameIsThatOfOneCommunicator(t *testing.T) {
	s := newSegment(t, 0, 1)
	r, reader := s.Rank(1), remap(t, s)
	if r.SetName(7); reader.Name(1, 7) != (CommName{}) {
		t.Errorf("%+v of a program that does not call MPI", reader.Name(1, 7))
	}
	ocean, air := CommName{"ocean", false}, CommName{strings.Repeat("air", 100), true}
	r.CallsMPI(func(comm uint64) CommName {
		if comm == 7 {
			return ocean
		}
		return air
	})
	if r.SetName(7); reader.Name(1, 7) != ocean || reader.Name(1, 8) != (CommName{}) ||
		reader.Name(0, 7) != (CommName{}) {
		t.Errorf("7: %+v, 8: %+v, of another rank: %+v; want %+v for the first", reader.Name(1, 7), reader.Name(1, 8),
			reader.Name(0, 7), ocean)
	}
	air.Text = air.Text[:noteWords*8-len(persistentMark)]
	if r.SetName(8); reader.Name(1, 8) != air || reader.Name(1, 7) != (CommName{}) {
		t.Errorf("8: %+v, 7: %+v; want the beginning of a long one, %+v, for the first", reader.Name(1, 8),
			reader.Name(1, 7), air)
	}
}

func TestRecorderKeepsTheLastCalls(t *testing.T) {
	s := newSegment(t, 0)
	r := s.Rank(0)
	first := r.BeginCall(&Call{Kind: calls.Barrier})
	for range Recorded {
		r.EndCall(r.BeginCall(&Call{Kind: calls.Bcast}))
	}
	r.EndCall(first)     // its record is another's now
	r.Stamp(first, 1234) // likewise
	got := s.Calls(0)
	if len(got) != Recorded || got[0].Number != 2 || got[Recorded-1].Number != Recorded+1 {
		t.Fatalf("%d calls, %d to %d; want the last %d", len(got), got[0].Number, got[len(got)-1].Number, Recorded)
	}
	for _, c := range got {
		if !c.Done || c.Start != 0 || c.Kind != calls.Bcast {
			t.Errorf("call %+v, want a finished bcast without start", c)
		}
	}
}

func TestNilRankDoesNothing(t *testing.T) {
	var r *Recorder
	if !r.Join() {
		t.Error("nil rank cannot join")
	}
	tk := r.BeginCall(&Call{Kind: calls.Barrier})
	r.Stamp(tk, 1)
	r.EndCall(tk)
	r.Leave()
	if tk != 0 {
		t.Errorf("ticket %d of a nil rank", tk)
	}
}

func TestRecordingDoesNotAllocate(t *testing.T) {
	r := newSegment(t, 0).Rank(0)
	c := Call{Kind: calls.Allreduce, Type: mem.F32}
	if n := testing.AllocsPerRun(100, func() { r.EndCall(r.BeginCall(&c)) }); n != 0 {
		t.Errorf("%v allocations for a call", n)
	}
}

// numbered returns a call all of whose fields follow from n.
func numbered(n uint64) Call {
	c := Call{Comm: n, Kind: calls.Kind(n % 20), Type: mem.Type(n % 7), Op: mem.Op(n % 5), Peer: -1,
		Count: int64(n * 3), Bytes: int64(n * 5), Start: int64(n * 7)}
	if !c.Kind.Collective() || c.Kind.Rooted() {
		c.Peer = int(n % 1000)
	}
	return c
}

// checkWhole fails for a recording whose fields belong to different calls.
func checkWhole(t *testing.T, c Recording) {
	t.Helper()
	if c.Call != numbered(c.Comm) {
		t.Fatalf("torn: %+v, want all of call %d", c, c.Comm)
	}
}

func TestReaderNeverSeesATornRecord(t *testing.T) {
	s := newSegment(t, 0)
	r, reader := s.Rank(0), remap(t, s)
	var stop atomic.Bool
	finished := make(chan struct{})
	go func() { // two writers at once, until stop
		defer close(finished)
		for n := uint64(1); !stop.Load(); n += 2 {
			c, d := numbered(n), numbered(n+1)
			x := r.BeginCall(&c)
			r.EndCall(r.BeginCall(&d))
			r.EndCall(x)
		}
	}()
	seen := 0
	for looks := 0; looks < 500 || seen == 0; looks++ { // the writer may begin late
		last := uint64(0)
		for _, c := range reader.Calls(0) {
			checkWhole(t, c)
			if c.Number <= last {
				t.Fatalf("call %d after %d", c.Number, last)
			}
			last = c.Number
			seen++
		}
	}
	stop.Store(true)
	<-finished
}

// TestReaderOfAnotherProcess is the same across processes: the child writes,
// this process reads.
func TestReaderOfAnotherProcess(t *testing.T) {
	const variable = "SEG_TEST_WRITES"
	if v := os.Getenv(variable); v != "" {
		s, err := Attach(3)
		if err != nil {
			t.Fatal(err)
		}
		r := s.Rank(0)
		last, _ := strconv.ParseUint(v, 10, 64)
		for n := uint64(1); n <= last; n++ {
			c := numbered(n)
			r.EndCall(r.BeginCall(&c))
		}
		return
	}
	s := newSegment(t, 0)
	fd, err := unix.Dup(s.FD())
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), "segment")
	defer file.Close()
	const calls = 50_000
	cmd := exec.Command(os.Args[0], "-test.run=^TestReaderOfAnotherProcess$")
	cmd.Env = append(os.Environ(), variable+"="+strconv.Itoa(calls))
	cmd.ExtraFiles = []*os.File{file}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for running := true; running; {
		select {
		case err := <-ended:
			if err != nil {
				t.Fatalf("writer: %v", err)
			}
			running = false
		default:
		}
		for _, c := range s.Calls(0) {
			checkWhole(t, c)
		}
	}
	got := s.Calls(0)
	if n := len(got); n != Recorded || got[n-1].Number != calls || !got[n-1].Done {
		t.Errorf("%d calls at the end, want the last %d", n, Recorded)
	}
}

func TestNowIsTheHostsClock(t *testing.T) {
	var before, after unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &before)
	now := Now()
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &after)
	const slack = int64(time.Millisecond) // the two clocks are read one after the other at start
	if now < before.Nano()-slack || now > after.Nano()+slack {
		t.Errorf("now %d, want %d to %d", now, before.Nano(), after.Nano())
	}
}

func TestUnixKeepsDistanceAndIsTheTimeOfDay(t *testing.T) {
	now := Now()
	if d := Unix(now+77) - Unix(now); d != 77 {
		t.Errorf("two moments 77 ns apart are %d ns apart", d)
	}
	if off := time.Since(time.Unix(0, Unix(now))).Abs(); off > time.Hour { // the clock may have been set
		t.Errorf("off by %v", off)
	}
}

func BenchmarkCall(b *testing.B) {
	r := newSegment(b, 0).Rank(0)
	c := Call{Kind: calls.Allreduce, Type: mem.F32, Count: 1024}
	for b.Loop() {
		r.EndCall(r.BeginCall(&c))
	}
}

func TestACallAfterOneThatIsBeingWrittenIsRecorded(t *testing.T) {
	s := newSegment(t, 0)
	r := s.Rank(0)
	stuck, _ := r.take()
	for range Recorded - 1 {
		r.BeginCall(&Call{Kind: calls.Bcast})
	}
	if tk := r.BeginCall(&Call{Kind: calls.Bcast}); tk != 0 {
		t.Errorf("ticket %d, where call %d is being written", tk, stuck)
	}
	if tk := r.BeginCall(&Call{Kind: calls.Barrier, Peer: -1}); tk == 0 {
		t.Error("the call after it is not recorded")
	}
}

// Of released memory only whole pages become holes: memory beside them stays.
func TestReleaseLeavesThePagesThatOthersUse(t *testing.T) {
	s := newSegment(t, 0, 1)
	if err := s.Claim(0, 4*pageSize); err != nil {
		t.Fatal(err)
	}
	area := s.Area()[:4*pageSize]
	for i := range area {
		area[i] = 7
	}
	before := held(t, s)
	for _, part := range [][2]int{{100, pageSize}, {1, pageSize - 1}, {pageSize + 1, 2*pageSize - 2}} {
		if err := s.Release(part[0], part[1]); err != nil || held(t, s) != before {
			t.Errorf("%d bytes at %d are no whole page: %v, and %d bytes are freed", part[1], part[0], err,
				before-held(t, s))
		}
	}
	if err := s.Release(pageSize-1, 2*pageSize+2); err != nil || before-held(t, s) != int64(2*pageSize) {
		t.Errorf("%v, and %d bytes are freed, want 2 pages", err, before-held(t, s))
	}
	if area[pageSize-1] != 7 || area[pageSize] != 0 || area[3*pageSize-1] != 0 || area[3*pageSize] != 7 {
		t.Errorf("%d, %d to %d, %d: want 7, zeros, 7", area[pageSize-1], area[pageSize], area[3*pageSize-1],
			area[3*pageSize])
	}
}
