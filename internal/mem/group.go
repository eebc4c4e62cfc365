package mem

// A CollectiveLibrary is the Space of a device with a library for whole collectives among devices
// of several ranks, on this host and on others.
type CollectiveLibrary interface {
	Space
	// Identity names the device in all processes of the host: its PCI address.
	Identity() string
	// Library returns the name and version of the library, such as "NCCL 2.18.3", or the reason why
	// the library cannot be opened. The first call opens the library.
	Library() (string, error)
	// Invite returns the invitation to a new Communicator. One of its ranks calls Invite and sends
	// the invitation to all others.
	Invite() ([]byte, error)
	// Join begins to make this rank a member of a Communicator of size ranks, each with a device of
	// its own. All ranks call Join with the same invitation. The Communicator is ready when Placed
	// reports true.
	Join(invitation []byte, rank, size int) (Communicator, error)
}

// A Communicator is a group of ranks whose devices do collectives, as in NCCL. Its methods begin to
// enqueue work on its Stream, and may return before the work is there: Placed reports that. All
// ranks call the same methods in the same order, each when the previous work is placed. Buffers are
// in memory of the device, and the caller leaves them alone until the work is done. GroupReduces
// reports the available reductions. One goroutine at a time uses a Communicator.
type Communicator interface {
	// Stream returns the Communicator's Stream, which Close closes.
	Stream() Stream
	Allreduce(send, recv Buffer, op Op) error        // in place if both are the same
	Reduce(root int, send, recv Buffer, op Op) error // recv is used only at the root; in place if both are the same
	Bcast(root int, b Buffer) error
	ReduceScatter(send, recv Buffer, op Op) error // equal blocks; recv may be this rank's block of send
	Allgather(send, recv Buffer) error            // send may be this rank's block of recv
	// Exchange sends out[i] to rank i and receives in[i] from rank i. Both sides of a message have
	// the same size. Empty Buffers are neither sent nor received. No two Buffers overlap, except
	// that a rank's message to itself may be in place.
	Exchange(out, in []Buffer) error
	// Placed reports, without waiting, whether the work of the last call is on the Stream or, after
	// Join, whether the Communicator is ready. Until the work is done Placed may return an error,
	// of the library or of another rank: then the Communicator must be aborted.
	Placed() (bool, error)
	// Abort ends the Communicator, even during work. When Abort returns nil, the device no longer
	// uses the Communicator's Buffers. After ten seconds Abort returns an error.
	Abort() error
	// Close ends the Communicator when no work is under way. It waits until all ranks call Close,
	// perhaps forever if one has died.
	Close() error
}

// GroupReduces reports whether Communicators combine elements of type t with op: Sum, Prod, Min and
// Max of all numbers except complex ones and 16-bit integers, and Avg of the non-integers among
// them. Avg may divide before it adds. The library decides the result of Min and Max with a NaN.
func GroupReduces(op Op, t Type) bool {
	switch op {
	case Sum, Prod, Min, Max, Avg:
	default:
		return false
	}
	if !op.Defined(t) {
		return false
	}
	switch t {
	case I8, U8, I32, U32, I64, U64, F16, BF16, F32, F64:
		return true
	}
	return false
}
