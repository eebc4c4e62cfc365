// Package ucp calls libucp, UCX's library of protocols, opened at run time, so that everything else
// runs without UCX. Package ucp sends and receives messages of bounded size, in order, and accesses
// memory of other ranks. Ranks are mere numbers.
//
// UCX gets no address of Go's memory: a call copies its arguments into C's memory before it
// returns. UCX caches registrations by address, and cannot notice that Go's runtime returns pages
// to the kernel. A slice at an old address would then be sent from, or stored to, pages that no
// longer belong to Go.
//
// A Worker is not safe for concurrent use, but may be used from any thread.
package ucp

import (
	"encoding/binary"
	"regexp"
	"slices"
)

// A Kind is the purpose of a Message.
type Kind uint32

// The kinds, as in shim.h.
const (
	First  Kind = iota // begins a frame: its header in Head, and payload
	More               // payload of the present frame
	Ack                // the answer to a goodbye
	Put                // part of a put: Head is from PutHead; the payload is stored
	Stored             // the answer to the last part of a put
	Done               // the read or flush with this Number is done; Data is the read data
	Hello              // of an unproven sender: From is meaningless
	Failed             // transfers with From have ended; Err is the reason
)

// A Message has arrived from a rank. Its slices lie in C's memory and are valid until Done.
type Message struct {
	Kind Kind
	From int
	Err  error  // the payload could not be fetched, or Failed
	Head []byte // the frame's header and a small payload, or a hello
	Data []byte // a large payload
	// Dropped means that the place of a Put had been recalled, or does not exist.
	Dropped bool
	Number  uint64 // of Done
	ref     ref
}

// Options are for Open.
type Options struct {
	Rank, Size int
	TLS        string // UCX's transports, in the syntax of UCX_TLS
	Devices    string // in the syntax of UCX_NET_DEVICES; "" leaves the choice to UCX
	Memory     bool   // TLS has shared memory
	Verbs      bool   // TLS has InfiniBand or RoCE
	Slabs      int    // number of registrations of chunks, 16 chunks each; 0: no limit
}

// Sizes, as in shim.h.
const (
	HeaderSize = 48        // of a frame's header
	ChunkSize  = 128 << 10 // largest data of a Send
	HelloSize  = 160       // largest hello
	PutSize    = 24        // of a Put's head
	PartSize   = 4 << 20   // largest part of a Put
	Regions    = 1024      // largest number of regions at a time
	MostKey    = 1024      // largest key in bytes; 64 devices have shorter ones
)

// lane matches UCX's description of a lane: "lane[0]:  0:rc_verbs/mlx5_0:1.0 md[0] ...".
var lane = regexp.MustCompile(`lane\[\d+\]:\s+\d+:(\S+/\S+)\.\d+\s`)

// lanes returns the transports and devices in UCX's description of an endpoint.
func lanes(info string) (names []string) {
	for _, m := range lane.FindAllStringSubmatch(info, -1) {
		names = append(names, m[1])
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// A place is 18 bits of the number of recalls, 10 bits of a region and 36 bits of an offset there,
// from 1.
const (
	offsetBits = 36
	regionBits = 10
)

// MostRegion is the largest size of a region in bytes.
const MostRegion = 1<<offsetBits - 1

// Place returns the place of offset bytes in region id, after this many recalls.
func Place(recalls uint64, id, offset int) uint64 {
	return recalls<<(offsetBits+regionBits) | uint64(id)<<offsetBits | uint64(offset+1)
}

// PutHead stores in b the head of a put's part for offset bytes behind a place.
func PutHead(b []byte, place uint64, offset int, last bool) {
	binary.NativeEndian.PutUint64(b, place)
	binary.NativeEndian.PutUint64(b[8:], uint64(offset))
	binary.NativeEndian.PutUint64(b[16:], 0)
	if last {
		b[16] = 1
	}
}

// LastPart reports whether the head of a part marks the last part.
func LastPart(b []byte) bool { return len(b) >= PutSize && binary.NativeEndian.Uint64(b[16:]) != 0 }
