package path

// A Threshold is a length in bytes at which another Path begins to win, or the length of a Path's
// chunks. A user may set a Threshold by name (see Tune). The measurements are medians of each
// call alone, float32, on a machine with two processors: "np=2 near" is two ranks on cores that
// share a cache; "2x2" and "2x4" are two hosts that are two agents of that machine, talking TCP,
// with two or four ranks each.
type Threshold uint8

const (
	shmChunk Threshold = iota
	shmLargeFrom
	shmSingleCopyFrom
	shmNonTemporalFrom
	shmNonTemporalOwn
	shmReadFrom
	shmReadBelow
	shmTrialFrom
	shmRingChunk
	shmRingBytes

	hierChunk
	hierSharesFrom
	hierVectorFrom
	hierBlocksFrom

	stagedChunk

	numThresholds
)

// thresholds are the names, values, and user's limits of all Thresholds. Middling lengths go
// through shared memory in chunks of at most a quarter of the buffer, so that each rank finds
// room while others still read, and of at least twice the chunk of the smallest buffer. A call of
// no bytes asks no question.
var thresholds = [numThresholds]struct {
	name        string
	bytes       int64
	least, most int64
}{
	// A collective through shared memory takes a single step up to this many bytes of a rank.
	// Longer collectives are pipelined, in chunks of this size through the small buffer.
	shmChunk: {"shm.chunk", 8 << 10, 2 << 10, 16 << 10},

	// The large buffer is used from this many bytes of a rank on (np=2 on an AMD EPYC 25/17, around
	// the small buffer and the large one: near, bcast of 15 KB 3.4 and 1.5 us, of 30 KB 4.7 and
	// 2.1, alltoall of 15 KB 4.4 and 2.1). From here on ranks also ask each other whether NCCL may
	// be used where it can.
	shmLargeFrom: {"shm.large", 8 << 10, 0, most},

	// Ranks ask whether vectors are from Alloc from this many bytes on (np=2 near, Intel Xeon
	// 6/207: bcast of 2 KiB 0.62 us instead of 0.84, of 1 KiB 0.62 and 0.63, but back to back,
	// where the root need not wait, 0.60 and 0.37; allgather of 1 KiB 0.65 and 0.52). Where ranks
	// share a processor the barrier at the end costs another context switch: there they ask from
	// the length of the large buffer on (np=4 on two processors: scatter of 16 KiB 20 us instead of
	// 13, allreduce of 64 KiB 16 instead of 60).
	shmSingleCopyFrom: {"shm.singlecopy", 2 << 10, 1, most},

	// Received data is stored with non-temporal stores from this many bytes of all ranks' buffers
	// on: plain stores would first fetch the lines from memory (np=2 near, plain and non-temporal:
	// gather of 16 MiB 3.0 and 1.5 ms, alltoall 5.2 and 3.6, reduce-scatter 5.3 and 3.8, of 4 MiB
	// 0.86 and 0.54, allgather of 4 MiB 0.89 and 0.71, allreduce of 8 MiB 1.7 and 0.9; np=4 on two
	// processors, allgather of 1 MiB 1.3 and 0.9. But of 4 MiB, which the caches hold, gather 0.31
	// and 0.41, scatter 0.34 and 0.45). In place, caches hold no bounce
	// buffers, and vectors may be twice as long (np=2 near: bcast of 16 MiB 0.39 and 0.61, of
	// 64 MiB 4.2 and 2.8; allreduce of 1 MiB 47 and 96 us, of 16 MiB 3.3 and 2.5 ms).
	shmNonTemporalFrom: {"shm.nontemporal", 20 << 20, 0, most},

	// Stores are also non-temporal only from this many bytes of a rank's buffers on, on average:
	// where each processor has a large cache of its own, all caches together hold more. See package
	// machine.
	shmNonTemporalOwn: {"shm.nontemporal.rank", 0, 0, most},

	// Messages between ordinary memory, from the first length on and below the second, are at first
	// read by their receiver where they lie (process_vm_readv), and collectives begin with vectors
	// that members reach in this way. The default is never, unless the processor is known to copy
	// faster in this way: see package machine.
	shmReadFrom:  {"shm.read", most, 1, most},
	shmReadBelow: {"shm.read.below", most, 1, most},

	// Ranks time now and then whether the kernel copies faster from this many bytes of a rank on
	// (np=2 far: allgather of 64 KiB 15.9 us, by the kernel 8.8; of 4 MiB 739 and 407. 16
	// processors of an Intel Xeon, through shared memory and by the kernel, us, 4 and 16 ranks, 64
	// KiB: bcast 12 and 13, 17 and 54; alltoall 47 and 21, 380 and 257; 4 MiB: bcast 543 and 392,
	// 715 and 788).
	shmTrialFrom: {"shm.trial", 16 << 10, 1, most},

	// The chunk of messages in a ring, and the size of the ring after longer messages: a power of
	// two, and less where the host's ranks are many. The best values depend on the processor: see
	// package machine and shm.Shape (two processors of an AMD EPYC, 4 MiB between two cores that
	// share a cache: 170 us, around 256 KiB 488; on an Intel Xeon the best copy went through 8
	// chunks of 16 KiB).
	shmRingChunk: {"shm.ring.chunk", 32 << 10, 4 << 10, 64 << 10},
	shmRingBytes: {"shm.ring.bytes", 2 << 20, 64 << 10, 2 << 20},

	// How much of a vector goes between hosts at a time, of each leader's share or in all:
	// meanwhile the next chunk is combined inside each host, and the previous chunk handed out
	// (cluster of comm/sim, 2x2, allreduce of 8 MiB: whole 4.8 ms, in chunks of 256 KiB, 512 KiB
	// and 1 MiB 3.3, 3.5 and 3.7; 2x2 at 1 Gbit/s, where the wire alone takes 67 ms: whole 106
	// ms, in chunks of 256 and 512 KiB 70, of 1 MiB 77. At 10 Gbit/s four hosts with two ranks,
	// which share two processors: bcast of 1 MiB in chunks of 256 and 512 KiB 1.8 and 1.3 ms).
	hierChunk: {"hier.chunk", 512 << 10, 256, most},

	// Where hosts have equal numbers of ranks, at least four each and with a processor each, all
	// ranks carry shares of an allreduce from this many bytes on, and of a reduce-scatter and an
	// allgather with equal blocks from a quarter of it for each host: else a single leader does
	// the work between hosts (cluster of comm/sim, 16 hosts with 8 ranks each, by leaders and in
	// shares: allreduce of 16 KiB 84.8 and 50.9 us, of 64 KiB 151 and 117; allgather of 1 KiB
	// blocks 92.0 and 74.4; at 100 Gbit/s reduce-scatter of 4 KiB blocks 265 and 201).
	hierSharesFrom: {"hier.shares", 16 << 10, 0, most},

	// From this many bytes of a vector on all ranks also carry shares of an allreduce of two or
	// three ranks to a host (cluster of comm/sim, 16 hosts with two ranks, 256 KiB by the leader
	// and in shares: 360 and 277 us; 2x2, where each rank was granted three tenths of a processor:
	// 256 KiB 537 and 389 us, 1 MiB 3.3 and 1.6 ms, 16 MiB 43 and 34). Shares lose where processors
	// are oversubscribed, and none is idle (1 MiB: 371 and 523 us). Bcast and reduce do not gain
	// either (1 MiB of bcast 503 and 681 us, of reduce 490 and 916). An allreduce with a function
	// goes by messages: longer ones have not been measured (2x2, by messages and by leaders: 8
	// bytes 44 and 19 us, 16 KiB 45 and 29, 256 KiB 315 and 190). From this many bytes on, vectors
	// from Alloc are read in place inside hosts (2x2, copied and in place: allreduce of 64 KiB 52
	// and 52 us, of 256 KiB 160 and 110, of 1 MiB 606 and 414; bcast of 64 KiB 27 and 33, of 1 MiB
	// 237 and 206; reduce of 1 MiB 317 and 258).
	hierVectorFrom: {"hier.vector", 256 << 10, 0, most},

	// From this many bytes of all blocks on, all ranks of every host also carry shares of a
	// reduce-scatter and an allgather (cluster of comm/sim, 2x2, reduce-scatter of 256 KiB blocks
	// by leaders and in shares: 388 and 325 us; measured: 573 and 320; 2x4 on two processors,
	// allgather of 64 KiB blocks 137 and 265 us, of 1 MiB blocks 9.7 and 7.1 ms). Other collectives
	// of blocks go by messages: a hierarchy saves no byte between hosts, and moves each once more
	// inside hosts (cluster, by messages and hierarchical: alltoall, 2x2 of 256 KiB blocks 423 and
	// 514 us; 2x8 of 64 KiB blocks, gather 183 and 259, scatter 242 and 267; measured: alltoall,
	// 2x2 of 128 KiB blocks 298 and 161, of 256 KiB 444 and 860; scatter of 2x4 324 and 436).
	hierBlocksFrom: {"hier.blocks", 1 << 20, 0, most},

	// How many bytes at a time go through pinned host memory, and are copied while others are under
	// way; they are enough for messages between hosts (2x2, in host memory: allreduce of 1 MiB in
	// 371 us, of 16 MiB at once in 15.8 ms). From two such chunks on ranks ask each other whether a
	// buffer is on a device: with fewer there is nothing to overlap.
	stagedChunk: {"staged.chunk", 1 << 20, 4 << 10, 16 << 20},
}

// most is the largest value of a threshold that needs no other.
const most = 1 << 40

const (
	// A vector that goes along a chain of hosts has chainParts chunks, but each at least a
	// chainLeast-th of a hierChunk: the last host waits for the first chunk, so more are better,
	// and each costs a message. A chain serves where that makes a chunk for each host: a host
	// sends the vector once, where a tree's root sends it for each subtree (cluster of comm/sim,
	// four hosts with two ranks each, by trees and along the chain: bcast of 8 MiB 3.6 and 3.3
	// ms, in 16 parts 4.1, reduce 6.4 and 3.5; bcast of 1 MiB in chunks of at least 256, 128 and
	// 64 KiB 648, 543 and 526 us; at 1 Gbit/s: bcast of 1 MiB 15.0 and 8.0 ms, of 8 MiB 141 and
	// 72; reduce 11.9 and 8.4, 103 and 69).
	chainParts, chainLeast = 32, 4

	// MaxShared is the largest number of ranks of a host that share memory. Each touches lines of
	// all others, on pages and in page tables of its own (start, barrier and end on two processors,
	// through shared memory and by messages: 512 ranks 2.3 and 1.1 s, 256 ranks 1.04 and 0.57, 128
	// ranks 0.38 and 0.26, but their allreduce of 64 KiB took 183 and 407 ms).
	MaxShared = 128

	// gateFrom is the number of oversubscribed ranks from which on all wait for a single member,
	// which waits for all others, in all steps. Fewer do so in barriers alone: the member is mostly
	// the root of the next collective, for which nobody waits then (np=4 on two processors, without
	// and with the gate of barriers, alone: bcast of 8 B 5.6 and .22 us, scatter of 1 KiB 6.2 and
	// .75; barriers back to back 4.1 and 5.8; all steps: allreduce 4.6 and 6.2; two processors,
	// allreduce of 8 bytes, with and without: np=64 0.44 and 0.80 ms, np=128 1.7 and 5.4; a tree of
	// such members takes 0.9 and 2.4 at least).
	gateFrom = 16

	// chosenFrom is the bytes of a rank from which on ranks choose by their measured costs how a
	// call moves its data, in a single step around the small buffer or the large one (np=2 near on
	// an AMD EPYC 25/17: gather of 4 KiB .97 and .45 us, allgather 1.0 and .6, bcast of 8 KB 1.6
	// and .8). Timing a call takes half a microsecond.
	chosenFrom = 2 << 10

	// widestStep bounds the bytes of a step through a bounce buffer with a single element of each
	// block: as much as the largest chunk that a user may set.
	widestStep = 16 << 10

	// largeParts is the least number of chunks of a long vector, so that a rank stores a chunk
	// while another loads a chunk (np=2 near, 4 MiB in chunks of 32 and 256 KiB: bcast in 145 and
	// 125 us, alltoall in 1060 and 720, allreduce in 450 and 350).
	largeParts = 8

	// manyParts is largeParts for more than two ranks, each of which reads a smaller part of a
	// chunk (64 KiB in 8 and 4 chunks, 4 and 8 ranks on 16 processors of an Intel Xeon, us:
	// allreduce 22 and 17, 50 and 25; allgather 36 and 29, 82 and 58; reduce-scatter 30 and 28, 85
	// and 70; alltoall 47 and 36, 117 and 108).
	manyParts = 4
)

// LargeBuffer returns the bytes of the large buffer of each rank, of this many on a host: twice
// the usual second-level cache, on purpose, since a line that another core holds costs more to
// take away than a line of the third level (1 MiB of bcast between two cores: 134 us around 64
// KiB, 71 around 1 MiB). Hosts with many ranks have smaller buffers, whose memory adds up.
func LargeBuffer(ranks int) int {
	switch {
	case ranks <= 16:
		return 2 << 20
	case ranks <= 64:
		return 1 << 20
	}
	return 512 << 10
}
