package path

// A Threshold is a length in bytes at which another Path begins to win, or the length of a Path's
// chunks. A user may set it by name (see Tune). Measurements are medians of each call alone,
// float32, on a machine with two processors: "np=2 near" is two ranks on cores that share a cache;
// "2x2" and "2x4" are two hosts, agents of that machine, talking TCP, with two or four ranks each.
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

// thresholds has the name, value and user's limits of each. Middling lengths go through shared
// memory in chunks of at most a quarter of the buffer, so that each rank finds room while others
// read, and of at least twice the smallest buffer's chunk. A call of no bytes asks no question.
var thresholds = [numThresholds]struct {
	name        string
	bytes       int64
	least, most int64
}{
	// A collective through shared memory takes a single step up to this many bytes of a rank.
	// Longer collectives are pipelined, in chunks of this size through the small buffer.
	shmChunk: {"shm.chunk", 8 << 10, 2 << 10, 16 << 10},

	// The large buffer is used from this many bytes of a rank on (np=2 near on an AMD EPYC 25/17,
	// around the small buffer and the large one: bcast of 15 KB 3.4 and 1.5 us). From here on ranks
	// also ask each other whether NCCL may be used where it can.
	shmLargeFrom: {"shm.large", 8 << 10, 0, most},

	// Ranks ask whether vectors are from Alloc from this many bytes on (np=2 near, Intel Xeon
	// 6/207: bcast of 2 KiB 0.62 us instead of 0.84). Where ranks share a processor the barrier at
	// the end costs another context switch: there they ask from the length of the large buffer on
	// (np=4 on two processors: scatter of 16 KiB 20 us instead of 13).
	shmSingleCopyFrom: {"shm.singlecopy", 2 << 10, 1, most},

	// Received data is stored with non-temporal stores from this many bytes of all ranks' buffers
	// on: plain stores would first fetch the lines from memory (np=2 near, plain and non-temporal:
	// gather of 16 MiB 3.0 and 1.5 ms; of 4 MiB, which the caches hold, 0.31 and 0.41). In place,
	// caches hold no bounce buffers, and vectors may be twice as long (np=2 near: bcast of 16 MiB
	// 0.39 and 0.61 ms, of 64 MiB 4.2 and 2.8).
	shmNonTemporalFrom: {"shm.nontemporal", 20 << 20, 0, most},

	// Stores are also non-temporal only from this many bytes of a rank's buffers on, on average:
	// where each processor has a large cache of its own, all caches together hold more. See package
	// machine.
	shmNonTemporalOwn: {"shm.nontemporal.rank", 0, 0, most},

	// Messages between ordinary memory, of lengths from the first to below the second, are at first
	// read by their receiver in place (process_vm_readv), and collectives begin with vectors
	// reached so. The default is never, but on processors known to copy faster so: package machine.
	shmReadFrom:  {"shm.read", most, 1, most},
	shmReadBelow: {"shm.read.below", most, 1, most},

	// Ranks time now and then whether the kernel copies faster from this many bytes of a rank on
	// (16 processors of an Intel Xeon, alltoall of 64 KiB through shared memory and by the kernel,
	// us: 4 ranks 47 and 21, 16 ranks 380 and 257; bcast 12 and 13, 17 and 54).
	shmTrialFrom: {"shm.trial", 16 << 10, 1, most},

	// The chunk of messages in a ring, and the size of the ring after longer messages: a power of
	// two, and less where the host's ranks are many. The best values depend on the processor: see
	// package machine and shm.Shape (two processors of an AMD EPYC, 4 MiB between two cores that
	// share a cache: 170 us, around 256 KiB 488).
	shmRingChunk: {"shm.ring.chunk", 32 << 10, 4 << 10, 64 << 10},
	shmRingBytes: {"shm.ring.bytes", 2 << 20, 64 << 10, 2 << 20},

	// How much of a vector goes between hosts at a time, of each leader's share or in all:
	// meanwhile the next chunk is combined inside each host, and the previous chunk handed out (2x2
	// at 1 Gbit/s, allreduce of 8 MiB, where the wire alone takes 67 ms: whole 106 ms, in chunks of
	// 256 and 512 KiB 70, of 1 MiB 77).
	hierChunk: {"hier.chunk", 512 << 10, 256, most},

	// Where hosts have equal numbers of ranks, at least four each and with a processor each, all
	// ranks carry shares of an allreduce from this many bytes on, and of a reduce-scatter and an
	// allgather with equal blocks from a quarter of it for each host: else a single leader does the
	// work between hosts (cluster of comm/sim, 16 hosts with 8 ranks each, by leaders and in
	// shares: allreduce of 16 KiB 84.8 and 50.9 us).
	hierSharesFrom: {"hier.shares", 16 << 10, 0, most},

	// From this many bytes of a vector on all ranks also carry shares of an allreduce of two or
	// three ranks to a host (cluster of comm/sim, 16 hosts with two ranks, 256 KiB by the leader
	// and in shares: 360 and 277 us). Shares lose where processors are oversubscribed, and none is
	// idle (1 MiB: 371 and 523 us). Bcast and reduce do not gain either (1 MiB of bcast 503 and 681
	// us). An allreduce with a function goes by messages: longer ones have not been measured (2x2,
	// 256 KiB by messages and by leaders: 315 and 190 us). From this many bytes on, vectors from
	// Alloc are read in place inside hosts (2x2, allreduce of 256 KiB copied and in place: 160 and
	// 110 us).
	hierVectorFrom: {"hier.vector", 256 << 10, 0, most},

	// From this many bytes of all blocks on, all ranks of every host also carry shares of a
	// reduce-scatter and an allgather (2x2, reduce-scatter of 256 KiB blocks by leaders and in
	// shares: 573 and 320 us). Other collectives of blocks go by messages: a hierarchy saves no
	// byte between hosts, and moves each once more inside hosts (2x2, alltoall of 256 KiB blocks by
	// messages and hierarchical: 444 and 860 us).
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
	// and each costs a message. A chain serves where that makes a chunk for each host: a host sends
	// the vector once, where a tree's root sends it for each subtree (cluster of comm/sim, four
	// hosts with two ranks each, bcast of 8 MiB by trees and along the chain: 3.6 and 3.3 ms, in 16
	// parts 4.1).
	chainParts, chainLeast = 32, 4

	// MaxShared is the largest number of ranks of a host that share memory: each touches lines of
	// all others, on pages and in page tables of its own (start, barrier and end on two processors,
	// through shared memory and by messages: 128 ranks 0.38 and 0.26 s, but their allreduce of 64
	// KiB took 183 and 407 ms).
	MaxShared = 128

	// gateFrom is the number of oversubscribed ranks from which on all wait for a single member,
	// which waits for all others, in all steps. Fewer do so in barriers alone: the member is mostly
	// the root of the next collective, for which nobody waits then (np=4 on two processors, without
	// and with the gate of barriers: bcast of 8 B alone 5.6 and .22 us; of all steps: allreduce 4.6
	// and 6.2 us, of 8 bytes with np=64 0.80 and 0.44 ms).
	gateFrom = 16

	// chosenFrom is the bytes of a rank from which on ranks choose by their measured costs how a
	// call moves its data, in a single step around the small buffer or the large one (np=2 near on
	// an AMD EPYC 25/17: gather of 4 KiB .97 and .45 us). Timing a call takes half a microsecond.
	chosenFrom = 2 << 10

	// widestStep bounds the bytes of a step through a bounce buffer with a single element of each
	// block: as much as the largest chunk that a user may set.
	widestStep = 16 << 10

	// largeParts is the least number of chunks of a long vector, so that a rank stores one while
	// another loads one (np=2 near, alltoall of 4 MiB in chunks of 32 and 256 KiB: 1060 and 720).
	largeParts = 8

	// manyParts is largeParts for more than two ranks, each of which reads less of a chunk (8 ranks
	// on 16 processors of an Intel Xeon, allreduce of 64 KiB in 8 and 4 chunks: 50 and 25 us).
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
