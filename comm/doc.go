// Package comm lets the processes of a job exchange messages: point to point,
// and in collectives such as Allreduce. It is what MPI programs use an MPI
// library for, in Go's words.
//
// A program calls Init, gets the communicator of all ranks, and is started by
// gompirun:
//
//	func main() {
//		ctx := context.Background()
//		c, err := comm.Init(ctx)
//		if err != nil {
//			log.Fatal(err)
//		}
//		defer c.Close(ctx)
//		sum := make([]float64, 1)
//		err = comm.Allreduce(ctx, c, []float64{float64(c.Rank())}, sum, comm.Sum)
//		...
//	}
//
// Functions take slices. Methods of the same names take Buffers, and have
// nonblocking (Iallreduce) and persistent (AllreduceInit) forms. Counts are
// ints, of elements, 64 bits long.
//
// # Order
//
// Messages from one rank to another with one tag on one Comm are received in
// the order sent. All ranks call the collectives of a Comm in the same order,
// blocking or not; nonblocking ones run one after the other. For collectives
// that run at the same time, Dup the Comm.
//
// # Buffers
//
// send and recv are the same slice (in place) or do not overlap. A call returns
// only when nothing touches its buffers any more, after an error too; after an
// error, a peer may still write to memory from Alloc until it has answered or left, so
// that Free and Close keep that memory from others until then. Arguments that
// mean nothing on a rank are ignored and may be nil.
//
// Vectors that are used again and again are best taken from Alloc: ranks of one host
// then read and write each other's in place.
//
// A Buffer may be memory of a device (package cudaops), on some ranks and not on
// others. Work of streams on it has to be done when the call begins, but for forms
// such as AllreduceOnStream and StartOn of a Persistent, which are in a stream's order.
// A collective of 32 KiB and more among ranks of one host, which all have such Buffers
// on devices that reach each other, is done on these; each rank takes some memory of its
// device for that (Config.DeviceArena), at the first one of a Comm; functions of the user's
// and Config.Deterministic keep reductions from it. One rank alone copies on its device.
// Otherwise Buffers go through pinned host memory. Messages of more than 512 KiB, and
// collectives of 32 KiB and more among ranks of one host, or 4 MiB among several hosts,
// are copied in pieces while others are on their way, which takes 8 MiB for each that
// goes on at a time; the rest are copied before and after, which takes as much as they
// are long, and so are gatherv, scatterv and alltoallv within a host. Of those among several
// hosts, what counts is how long a rank's own vector is, and they take 4 MiB for each message
// under way, hardly more than 32 in all. Memory is kept for the next call until the last Comm
// is closed.
//
// With Config.CUDA "nccl", NVIDIA's library does collectives of 32 KiB and more of which
// all ranks, on however many hosts, have their Buffers on devices, each on one of its
// own: but scans, exchanges in place, and reductions that it does not know. The first one of
// a Comm then takes some seconds.
//
// # Results
//
// Same build, ranks, sizes and tuning: bit-identical results, the same on every
// rank. Config.Deterministic: identical whatever the algorithm, the transport or
// the length of the message. Sums of 16-bit floats accumulate in float32, and
// averages are divided there, too, before they are rounded; when a message carries a
// partial sum, and in deterministic mode, that is rounded to its type first, so that an
// average is infinite where the sum is. Subnormal numbers are
// kept. Min and Max of floats give a NaN where any operand is one, whichever rank has
// it, and take -0 for less than 0; which of its bit patterns a NaN has is no promise
// between processors of different kinds. How NCCL rounds, and what it makes of NaN, is its
// own affair.
//
// # Errors
//
// Every operation ends: with success, with an error, or when its context ends. One thing
// it then still waits for, and Close too, without a bound: a copy that a device is
// making, which nothing can call back and whose memory must not be touched after the
// return. An Error names operation, rank, peer and host, and unwraps to a reason:
//
//   - Wrong arguments are found before anything is sent, and break nothing.
//   - Ranks that call different collectives, or the same one with different
//     roots, operators, types or counts, all get ErrMismatch, with both calls. A
//     rank whose part was done already gets it from one of its next calls, or
//     from Close, unless another rank is more than a second late.
//   - A rank that dies or is cut off breaks every Comm it is in, everywhere, at
//     once: pending and later operations return ErrRevoked with the cause.
//   - Messages to and from a rank that has closed the Comm fail with ErrLeft; a
//     collective that waits for it breaks the Comm. That rank answers from inside any
//     call it makes. A receive from AnySource fails when all have; of ranks on other
//     hosts that it never had to do with, it does not hear.
//   - A context that ends before a Recv or Probe has matched a message cancels
//     only that call; one that has ended before the call matches nothing. Later, or
//     in a collective, it breaks the Comm: others count on this rank. The ctx of
//     Request.Wait bounds the wait alone.
//
// # Processes
//
// Comm installs no signal handler and never ends the process. A process that
// called Init ends well if it closed its communicators and exits with status 0;
// otherwise gompirun ends the job.
//
// # Goroutines
//
// Everything may be called from any goroutine, collectives of one Comm from one
// at a time: two goroutines inside blocking ones get ErrConcurrent. There is no
// engine thread: whoever waits for a message moves the messages of all. So that
// they also move while the program computes, leave one of GOMAXPROCS to them.
package comm
