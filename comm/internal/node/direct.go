package node

import (
	"unsafe"

	"gompi/comm/internal/symheap"
	"gompi/internal/mem"
)

// An access is what a room knows of its members' heaps. Vectors that lie there need no
// stage: members read those of others, and write to them, where they are.
//
// Whether a member's vectors do is its own affair, so all tell each other where they
// are, in a step with which the collective begins, and go the ordinary way if one of
// them cannot be reached. It also orders what others load and
// store after what the owner did before: they begin when they have seen the step. The
// collective ends with a barrier, so nobody returns before its vectors are read and
// written.
type access struct {
	heaps  [][]byte  // by member
	places []vectors // by member, in the collective under way
}

// vectors tells where a member's send and recv lie in its heap: NotShared if others need one and
// cannot reach it.
type vectors [2]symheap.Place

type side int

const (
	sends side = iota
	recvs
)

// What a member does at a time: so little that what it has combined is still in its
// first cache when it stores it to others, but more where stores go past the caches
// (np=2 near, allreduce in pieces of 16 and 256 KiB: of 1 MiB 33.2 and 34.0 us, of
// 64 MiB 9.0 and 8.5 ms).
const (
	directPiece     = 16 << 10
	directPiecePast = 256 << 10
)

// directPastFrom is the bytes of a member's vectors, on average, from which on they are
// stored past the caches (jointly has the cells).
const directPastFrom = 16 << 20

func pieceDirect(past bool) int {
	if past {
		return directPiecePast
	}
	return directPiece
}

// SeeHeaps tells where the members' heaps are.
func (r *Room) SeeHeaps(heaps [][]byte) {
	r.access = access{heaps: heaps, places: make([]vectors, len(heaps))}
}

// place returns where b lies in this member's heap.
func (r *Room) place(b []byte) symheap.Place { return symheap.Locate(r.access.heaps[r.me], b) }

// vector returns n bytes from off on of what lies at a place of a member's heap.
func (r *Room) vector(member int, place symheap.Place, off, n int) []byte {
	return place.At(r.access.heaps[member], off, n)
}

// show tells the others where this member's vectors are, and reports whether all
// can be reached. The members' calls are compared in it.
func (r *Room) show(mine vectors) (direct bool, err error) {
	r.step++
	s := r.step
	r.lay(s, int(unsafe.Sizeof(mine)), false)
	h, err := r.acquire(s)
	if err != nil {
		return false, err
	}
	r.sign(h)
	*(*vectors)(unsafe.Pointer(&h.small)) = mine
	r.publish(h, s)
	if err := r.meetAll(s); err != nil {
		return false, err
	}
	direct = true
	for j := range r.parts {
		at := *(*vectors)(unsafe.Pointer(&r.head(j, s).small))
		r.access.places[j] = at
		direct = direct && at[sends] != symheap.NotShared && at[recvs] != symheap.NotShared
	}
	r.free = s - 1
	return direct, nil
}

// carry copies src to dst, past the caches if they would not hold it. The two are the
// same memory or apart.
func carry(dst, src []byte, past bool) {
	if unsafe.SliceData(dst) == unsafe.SliceData(src) {
		return
	}
	for len(src) > 0 {
		n := min(len(src), directPiecePast)
		if past {
			mem.Stream(dst[:n], src[:n])
		} else {
			copy(dst, src[:n])
		}
		dst, src = dst[n:], src[n:]
	}
}
