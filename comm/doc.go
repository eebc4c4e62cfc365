// Package comm lets the processes of a job exchange messages: point to point, and in collectives
// such as Allreduce. It is for Go programs the counterpart of an MPI library for C programs.
//
// # The model
//
// A job is a number of processes, its ranks, which gompirun starts: rank 0 to Size()-1. Init
// connects a rank to the others and returns the communicator of all ranks, a *Comm. A message goes
// from one rank of a communicator to another and has a tag, by which Recv selects messages. A
// collective is a call that all ranks of a communicator make. Split and Dup make further
// communicators, each with messages of its own; package topology makes grids and graphs of ranks.
// Close ends a communicator. Package window has memory that others access without action by its
// owner.
//
//	func main() {
//		comm.Run(func(ctx context.Context, c *comm.Comm) error {
//			sum := make([]float64, 1)
//			return comm.Allreduce(ctx, c, []float64{float64(c.Rank())}, sum, comm.Sum)
//		})
//	}
//
// Functions take slices. Methods of the same names take Buffers (see Of and Lay), and have
// nonblocking (Iallreduce) and persistent (AllreduceInit) forms. Counts are ints, of elements, 64
// bits long. Ranks of one host exchange data through shared memory, other ranks over RDMA or TCP; a
// program sees no difference.
//
//   - Messages: [Send], [Ssend], [Recv], [Sendrecv], [Isend], [Issend], [Irecv], [Comm.Probe],
//     [Comm.Iprobe], [Comm.Mprobe]; of any type and length: [SendValue], [RecvValue]
//   - Requests: [Request.Wait], [Request.Test], [WaitAll], [WaitAny]
//   - Collectives: [Barrier], [Bcast], [Reduce], [Allreduce], [ReduceScatter],
//     [ReduceScatterBlock], [Gather], [Gatherv], [Scatter], [Scatterv], [Allgather], [Allgatherv],
//     [Alltoall], [Alltoallv], [Alltoallw], [Scan], [Exscan]
//   - Programs and communicators: [Run], [Init], [Comm.Split], [Comm.Dup], [Comm.Create], [Comm.Close]
//
// # Collectives
//
// All ranks of a Comm call the same collective, with the same root, operator and element type, and
// with slices of the same length, except for the blocks of the v and w forms. If they do not, all
// ranks get ErrMismatch. A collective blocks until this rank's part is done: its results have come,
// and its send may be changed. Other ranks may still be in the call; only Barrier waits until all
// ranks have called it. An argument without meaning on a rank, such as recv of Reduce away from the
// root, is ignored and may be nil. If ctx ends during a collective, the call returns the cause and
// the Comm is broken, since the other ranks wait for this rank.
//
// # Order
//
// Messages from one rank to another with one tag on one Comm are received in the order sent. All
// ranks call the collectives of a Comm in the same order, blocking or not; nonblocking collectives
// run one after the other. For collectives that run at the same time, Dup the Comm.
//
// # Buffers
//
// send and recv do not overlap, unless the call is in place: they are then the same slice, or one
// is this rank's block of the other, as the function's comment says. After a call, even a failed
// one, nothing touches its buffers any more. There are two exceptions: memory from Alloc, and a
// copy by a device (see Errors).
//
// Scattered elements, such as a column of a matrix, are a Buffer, too: Lay makes the Buffer of a
// slice and a Layout, and no program has to pack elements.
//
//	column, err := comm.Vector(rows, 1, cols) // one element of each row
//	...
//	right, err := comm.Lay(matrix[cols-1:], column)
//	...
//	err = c.Send(ctx, to, tag, right)
//
// Memory from Alloc makes collectives and long messages faster: the ranks of one host read and
// write such memory in place, and RDMA needs no copy. After an error, a peer may still write there
// until the peer has noticed the error or left. Until then a later Alloc does not reuse the memory.
//
// # Results
//
// With the same build, placement of ranks, processors, sizes and tuning, results are the same bits
// in every run and on every rank. Config.Deterministic makes results independent of algorithm,
// transport, placement and message length, too. Reductions by NCCL are excepted.
//
// Sums of 16-bit floats accumulate in float32 and are rounded once; so are averages, after the
// division. If a message carries a partial sum, and with Deterministic, the sum is rounded to its
// type first, so an average is infinite if the sum is. Subnormal numbers are kept. Min and Max of
// floats give a NaN if any operand is one, and take -0 for less than 0. The bit pattern of a NaN
// may differ between kinds of processors.
//
// # Errors
//
// A call ends with success, with an error, or when its context ends. A Recv that no rank answers,
// or a collective that a rank never calls, waits until its context ends: set a deadline. One wait
// ignores the context, in Close too: a copy by a device cannot be cancelled, and no call returns
// during the copy.
//
// An Error names operation, rank, peer and host, and unwraps to a reason:
//
//   - Wrong arguments are found before anything is sent, and break nothing. If the arguments of
//     only one rank are wrong, the others still wait for that rank.
//   - Ranks that call different collectives, or the same one with different roots, operators, types
//     or counts, all get ErrMismatch, with both calls. A rank that has finished its part gets the
//     error from one of its next calls, or from Close, unless another rank is more than a second
//     late.
//   - A rank that dies or is cut off breaks each of its Comms, on all ranks, at once: pending and
//     later operations return ErrRevoked with the cause.
//   - Messages to and from a rank that has closed the Comm fail with ErrLeft; a collective that
//     waits for such a rank breaks the Comm. A receive from AnySource fails when all other ranks
//     have closed the Comm. (A rank of another host that never exchanged a message with this one is
//     not noticed.)
//   - If the context ends before a message has matched, only that call fails: a send is withdrawn,
//     and with a context that has already ended nothing is sent or received. After the match the
//     call waits for the message, unless the message stands still for more than 5 s; then the Comm
//     breaks, since the other rank counts on this one. A collective breaks the Comm at once. The ctx
//     of Request.Wait bounds that wait alone.
//
// # Processes
//
// Only Run installs a signal handler and ends the process. A process that called Init ends well
// if it has closed its communicators and exits with status 0; otherwise gompirun ends the job.
//
// With gompirun -recover a failed process does not end the job. The other ranks call Shrink, which
// works on a broken Comm, and continue with its result; or Restore, in which new processes take the
// places of the dead. Agree combines flags of all living ranks, and Revoke interrupts ranks that
// wait in other communicators. docs/recovery.md has a training loop.
//
// # Goroutines
//
// All but Comm.SetName and a Persistent may be used by several goroutines at once. Collectives of
// one Comm are called from one goroutine at a time: two goroutines inside blocking collectives get
// ErrConcurrent. There is no communication thread: a waiting goroutine makes progress for all. For
// progress while the program computes, set GOMAXPROCS to one more than the computing goroutines.
//
// # Device memory
//
// A Buffer may be memory of a GPU (package cudaops), on some ranks and not on others. Work of
// streams on the Buffer must be done when the call begins. Config.CUDA says which collectives NCCL
// does. All others, and messages, go through pinned host memory, long ones in chunks that are
// copied while others are under way. This takes up to 8 MiB for each operation under way, or the
// length of a short buffer. The memory is kept until the last Comm is closed.
package comm

//go:generate go run gen_forms.go
