package mem

// A Grouper is an Accelerator with a library for whole collectives among devices of
// several ranks, on this host and on others.
type Grouper interface {
	Accelerator
	// Library opens the library, when first called, and returns its name with its
	// version, "NCCL 2.18.3"; or why there is none.
	Library() (string, error)
	// Invite returns what all ranks of a Group to be are told by one of them.
	Invite() ([]byte, error)
	// Join begins to make the device number rank of a Group of size ranks, each with
	// a device that no other has. All call it with the same invitation. The Group is
	// there when its Placed says so.
	Join(invitation []byte, rank, size int) (Group, error)
}

// A Group is ranks whose devices do collectives together. Its methods put work on its
// Queue, and return before it is there: Placed tells. All ranks call the same ones, in
// the same order, each when the one before is placed. Buffers are the device's, and stay
// as they are until the work is done. Reductions are those of GroupReduces. One goroutine
// at a time uses a Group.
type Group interface {
	// Queue returns the Queue that the Group puts work on, and ends. Others may put work
	// there, too, but while something is being placed.
	Queue() Queue
	Allreduce(send, recv Buffer, op Op) error        // in place if both are the same
	Reduce(root int, send, recv Buffer, op Op) error // recv is the root's alone; in place
	Bcast(root int, b Buffer) error
	ReduceScatter(send, recv Buffer, op Op) error // equal blocks; recv may be this rank's of send
	Allgather(send, recv Buffer) error            // send may be this rank's block of recv
	// Exchange sends out[i] to rank i and receives in[i] from it, which has as many
	// bytes there as here. Empty Buffers are neither sent nor received. No two
	// overlap, but that a rank may have the same for itself in both.
	Exchange(out, in []Buffer) error
	// Placed reports whether what was called last is on the Queue, or, after Join, whether
	// the Group is there; it waits for nothing. An error is that of the library, or of
	// another rank, at any time until the work is done: then the Group has to be aborted.
	Placed() (bool, error)
	// Abort ends the Group in the midst of whatever it does. When it returns, the device
	// does nothing with its Buffers any more; if that takes longer than ten seconds, it
	// returns an error.
	Abort() error
	// Close ends the Group when it has nothing to do. It waits until all ranks do so, and
	// perhaps forever if one is gone.
	Close() error
}

// GroupReduces reports whether Groups combine elements of type t with op: sums,
// products, least, greatest and averages of all numbers but complex ones and integers
// of 16 bits. Of floating-point numbers, Avg may divide them before it adds, and what Min
// and Max make of those that are none is the library's affair.
func GroupReduces(op Op, t Type) bool {
	switch op {
	case Sum, Prod, Min, Max, Avg:
	default:
		return false
	}
	switch t {
	case I8, U8, I32, U32, I64, U64, F16, BF16, F32, F64:
		return true
	}
	return false
}
