// Package stats is the statistics that the ranks of a host keep of their own calls, for gompirun
// -stats and -trace. Ranks write them to memory shared with their agent, which reads the memory
// when the ranks have ended. So the counts of killed ranks survive.
//
// # Layout
//
// The memory is the extension of the host's segment (package seg), in the byte order of the host:
//
//	header      4096 bytes: how many ranks, peers and events there are
//	worlds      4 bytes for each local rank: its rank in the job
//	area        one per local rank, in whole pages:
//	  counters  of the rank
//	  sites     Sites, found by their keys: a table with linear probing
//	  peers     messages and bytes sent, by rank in the job
//	  events    a ring of the latest calls, with -trace alone
//
// C writes the same memory: mpi/libmpi/face/counted.c.
//
// # Sites
//
// A site is a function and the place in the program that calls it. In Go its key is a hash of the
// innermost return addresses, in C one of the return address and the function. A call of mpi4py's
// moves to the site of its line in Python as it ends. The rank names a site at its first call, so
// that the sites of killed ranks have names, too.
//
// # Times
//
// Two reads of the clock take 50 ns, and a short call takes 200. So a site whose calls take less
// than Short on average times, after some calls, only one in Sampled, which stands for as many.
// Every call and its bytes are counted.
package stats

import (
	"fmt"
	"sync/atomic"
	"unsafe"
)

const (
	magic = 0x73_74_61_74_73_67_6d_31

	// Sites bounds the sites of a rank. Calls from other places are counted by function.
	//
	//c:const GOMPI_STATS_
	Sites = 512
	// mostPeers bounds the ranks to which messages are counted separately.
	mostPeers = 4096
	// Events is the number of calls that a trace keeps of each rank, the latest.
	Events = 32 << 10

	headerSize = 4096
	pageSize   = 64 << 10 // the largest of any kernel
)

type header struct {
	magic                uint64
	ranks, peers, events uint64
	_                    [headerSize - 32]byte
}

// A peer counts the messages to one rank.
//
//c:struct gompi_sent
type peer struct{ messages, bytes atomic.Uint64 }

// An event is one call. stamp, the event's number plus one, is written last.
//
//c:struct gompi_event
type event struct {
	stamp           atomic.Uint64
	begin, duration int64
	site            int32
	peer, tag       int32
	_               int32
	bytes           uint64
}

var _ [headerSize]byte = [unsafe.Sizeof(header{})]byte{}

// A Memory is the statistics of a host.
type Memory struct {
	mem  []byte
	head *header
}

// Size returns the bytes for the ranks of a host, given the number of the job's places for ranks.
func Size(ranks, places int, trace bool) int {
	h := shape(ranks, places, trace)
	return h.areas() + ranks*h.stride()
}

// areas returns the offset of the first area.
func (h *header) areas() int { return wholePages(headerSize + int(h.ranks)*4) }

func shape(ranks, places int, trace bool) header {
	h := header{magic: magic, ranks: uint64(ranks), peers: uint64(min(places, mostPeers))}
	if trace {
		h.events = Events
	}
	return h
}

func (h *header) stride() int {
	n := unsafe.Sizeof(counters{}) + Sites*unsafe.Sizeof(site{})
	n += uintptr(h.peers)*unsafe.Sizeof(peer{}) + uintptr(h.events)*unsafe.Sizeof(event{})
	return wholePages(int(n))
}

func wholePages(n int) int { return (n + pageSize - 1) &^ (pageSize - 1) }

// Format lays out zeroed memory of Size bytes. ranks has the world ranks of the local ranks.
func Format(mem []byte, ranks []int, places int, trace bool) *Memory {
	h := (*header)(unsafe.Pointer(unsafe.SliceData(mem)))
	*h = shape(len(ranks), places, trace)
	m := &Memory{mem, h}
	for i, rank := range ranks {
		m.worlds()[i] = int32(rank)
		c := m.area(i).counters
		c.peers, c.events = h.peers, h.events
	}
	return m
}

// Of returns the Memory that Format has laid out in mem.
func Of(mem []byte) (*Memory, error) {
	h := (*header)(unsafe.Pointer(unsafe.SliceData(mem)))
	if len(mem) < headerSize || h.magic != magic || len(mem) < h.areas()+int(h.ranks)*h.stride() {
		return nil, fmt.Errorf("%d bytes are no memory for statistics of this version", len(mem))
	}
	return &Memory{mem, h}, nil
}

func (m *Memory) worlds() []int32 {
	return unsafe.Slice((*int32)(unsafe.Pointer(&m.mem[headerSize])), m.head.ranks)
}

// An area is the memory of one rank.
type area struct {
	*counters
	sites  *[Sites]site
	peers  []peer
	events []event
}

func (m *Memory) area(local int) area {
	at := unsafe.Pointer(&m.mem[m.head.areas()+local*m.head.stride()])
	a := area{counters: (*counters)(at)}
	a.sites = (*[Sites]site)(unsafe.Add(at, unsafe.Sizeof(*a.counters)))
	at = unsafe.Add(unsafe.Pointer(a.sites), unsafe.Sizeof(*a.sites))
	a.peers = unsafe.Slice((*peer)(at), m.head.peers)
	at = unsafe.Add(at, uintptr(m.head.peers)*unsafe.Sizeof(peer{}))
	a.events = unsafe.Slice((*event)(at), m.head.events)
	return a
}
