package seg

import (
	"cmp"
	"errors"
	"fmt"
	"sort"
	"sync"
	"unsafe"

	"gompi/internal/world"
)

// A Segment is a host's segment, mapped here. Any goroutine may call its methods; none blocks.
type Segment struct {
	fd    int
	mem   []byte
	head  *header
	lines []line
	calls []record
	limit func() Limit // the limit that claims check

	without error // why there is no shared memory, nil if there is

	mapped    sync.Once // arenas
	arenas    []byte
	addresses []byte // the address space reserved for arenas
}

// view makes a Segment of mapped memory whose header is in place.
func view(fd int, mem []byte) (*Segment, error) {
	h := (*header)(unsafe.Pointer(unsafe.SliceData(mem)))
	if h.magic != magic || h.version != version {
		return nil, fmt.Errorf("host segment starts with %#x version %d, want %#x version %d", h.magic,
			h.version, uint64(magic), version)
	}
	n := int(h.ranks)
	if n < 1 || n > MaxRanks {
		return nil, fmt.Errorf("host segment for %d ranks, want 1 to %d", n, MaxRanks)
	}
	lines, calls, end := sizes(n)
	if h.lines != uint64(lines) || h.calls != uint64(calls) || h.end != uint64(end) || end > len(mem) {
		return nil, errors.New("host segment with offsets of another layout")
	}
	return &Segment{
		fd:    fd,
		limit: MemoryLimit,
		mem:   mem,
		head:  h,
		lines: unsafe.Slice((*line)(unsafe.Pointer(&mem[lines])), n),
		calls: unsafe.Slice((*record)(unsafe.Pointer(&mem[calls])), n*Recorded),
	}, nil
}

// InMemory returns a segment for n ranks that are goroutines of this process: with their states and
// flight recorders, and without an area.
func InMemory(n int) (*Segment, error) {
	_, _, end := sizes(n)
	words, ranks := make([]uint64, end/8), make([]world.Rank, n) // of words, to be aligned
	for i := range ranks {
		ranks[i] = world.Rank(i)
	}
	mem := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), end)
	format(mem, ranks)
	return view(-1, mem)
}

// format lays a fresh segment out in zeroed memory. ranks are the ranks of this
// host, in ascending order.
func format(mem []byte, ranks []world.Rank) {
	lines, calls, end := sizes(len(ranks))
	h := (*header)(unsafe.Pointer(unsafe.SliceData(mem)))
	h.version, h.ranks, h.size = version, uint32(len(ranks)), uint64(len(mem))
	h.lines, h.calls, h.end = uint64(lines), uint64(calls), uint64(end)
	for i, r := range ranks {
		(*line)(unsafe.Pointer(&mem[lines+i*lineSize])).rank = r
	}
	h.magic = magic
}

// Without returns why New could not make shared memory, nil if it could.
func (s *Segment) Without() error { return s.without }

// Area returns the memory through which the ranks exchange frames, nil if the segment has none, or
// this process cannot map so much. Claim a part of the area before touching that part.
func (s *Segment) Area() []byte {
	if end := int(s.head.end); len(s.mem) >= end+AreaSize(s.Ranks()) {
		return s.mem[end:][:AreaSize(s.Ranks())]
	}
	return nil
}

// Arena returns a local rank's arena, nil if there is no area. Claim a part before touching it.
func (s *Segment) Arena(local world.LocalRank) []byte {
	if s.Area() == nil {
		return nil
	}
	s.mapped.Do(s.mapArenas)
	if s.arenas == nil {
		return nil
	}
	size := ArenaSize(s.Ranks())
	return s.arenas[int(local)*size:][:size:size]
}

// SetJobSize notes the number of ranks in the job, for JobSize. The agent calls it.
func (s *Segment) SetJobSize(n int) { s.head.job = uint64(n) }

// LimitBy replaces MemoryLimit for claims, for tests of ranks that run out of memory. It is called
// before the first claim.
func (s *Segment) LimitBy(limit func() Limit) { s.limit = limit }

// FD returns the descriptor of the segment's memory, which the Segment still owns.
func (s *Segment) FD() int { return s.fd }

// Ranks returns the number of ranks on this host.
func (s *Segment) Ranks() int { return len(s.lines) }

// WorldRank returns the rank in the job of a local rank.
func (s *Segment) WorldRank(local world.LocalRank) world.Rank { return s.lines[local].rank }

// LocalRank returns the local rank of a job's rank, if on this host. Ranks of a host ascend.
func (s *Segment) LocalRank(rank world.Rank) (world.LocalRank, bool) {
	i, ok := sort.Find(len(s.lines), func(i int) int { return cmp.Compare(rank, s.lines[i].rank) })
	return world.LocalRank(i), ok
}

// Epoch returns the word that grows whenever the agent has news for the ranks of this host. Epoch
// is one atomic load, fit for a spin loop.
func (s *Segment) Epoch() uint64 { return s.head.epoch.Load() }

// Bump increments Epoch. The agent calls it after writing the news to the ranks' sockets, so that a
// rank that sees the new epoch finds the news.
func (s *Segment) Bump() { s.head.epoch.Add(1) }

// State returns the present State of a local rank.
func (s *Segment) State(local world.LocalRank) State { return State(s.lines[local].state.Load()) }

// LeftAt returns the time, as Now, at which a local rank began to leave; 0 if the rank has not.
func (s *Segment) LeftAt(local world.LocalRank) int64 { return s.lines[local].left.Load() }

// SetEnded marks a local rank's process as ended. The agent calls it after reaping the process,
// once it no longer needs the previous state. Without an agent, every rank that learns of the death
// calls it.
func (s *Segment) SetEnded(local world.LocalRank) { s.lines[local].state.Store(uint32(Ended)) }

// CameLate reports whether a local rank's program began after the process that the agent had
// started in its place was over.
func (s *Segment) CameLate(local world.LocalRank) bool {
	return s.lines[local].marks.Load()&cameLate != 0
}

// CallsMPI reports whether a local rank runs an MPI program.
func (s *Segment) CallsMPI(local world.LocalRank) bool {
	return s.lines[local].marks.Load()&callsMPI != 0
}

// PID returns the process that a local rank joined from, 0 before it joined. The agent has started
// another process if that process is a wrapper.
func (s *Segment) PID(local world.LocalRank) int { return int(s.lines[local].pid.Load()) }

// Rank returns a local rank's own view, for reporting its state and its calls. Only that rank's
// process calls Rank, once.
func (s *Segment) Rank(local world.LocalRank) *Recorder {
	return &Recorder{line: &s.lines[local], ring: (*[Recorded]record)(s.calls[local*Recorded:])}
}

// A State is a rank's progress through the job.
type State uint32

// The states, in the order in which a rank passes them.
const (
	Starting State = iota // its process exists, or will at once
	Joined                // it called Init
	Closed                // it closed its communicators and may end
	Ended                 // its process is reaped
	numStates
)

var stateNames = [numStates]string{"starting", "joined", "closed", "ended"}

func (s State) String() string {
	if s >= numStates {
		return fmt.Sprintf("state(%d)", uint32(s))
	}
	return stateNames[s]
}
