package seg

import (
	"testing"

	"gompi/internal/calls"
	"gompi/internal/mem"
)

func TestCallsInTheTermsOfMPI(t *testing.T) {
	sum := Call{Kind: calls.Allreduce, Type: mem.F64, Op: mem.Sum, Count: 3, Peer: -1, Seq: 2}
	own := sum
	own.Comm = 9
	pairs := Call{Kind: calls.Reduce, Type: mem.Opaque, Op: mem.Custom, Count: 2, Size: 24, Peer: 1, Seq: 2}
	step := Call{Kind: calls.Reduce, Of: calls.ReduceScatter, Type: mem.F64, Op: mem.Sum, Count: 3, Seq: 2}
	across := Call{Kind: calls.Alltoallw, Of: calls.Bcast, Peer: -1, Seq: 2}
	window := Call{Kind: calls.Allgather, Of: calls.Functions["MPI_Win_create"], Type: mem.I64, Count: 4,
		Peer: -1, Seq: 2}
	shared := Call{Kind: calls.Bcast, Of: calls.Functions["MPI_Intercomm_create"], Type: mem.I64, Count: 2,
		Peer: 1, Seq: 2}
	blocks := Call{Kind: calls.Gatherv, Type: mem.U8, Peer: 1, Seq: 2}
	split := Call{Kind: calls.Split, Type: mem.I64, Count: 0, Comm: 7, Seq: 4, Peer: -1}
	recv := Call{Kind: calls.Recv, Type: mem.U8, Count: 5, Peer: 1, Seq: 9}
	send := Call{Kind: calls.Send, Type: mem.U8, Count: 5, Peer: 1, Seq: 9, Comm: 7, Held: 3}
	probe := Call{Kind: calls.Probe, Peer: -1, Seq: -1}
	for _, tt := range []struct {
		c                    Call
		function, text, site string
		on                   CommName
	}{
		{sum, "MPI_Allreduce", "MPI_Allreduce(3 MPI_DOUBLE, MPI_SUM) number 2 on MPI_COMM_WORLD", "", CommName{}},
		{sum, "", "MPI_Allreduce(3 MPI_DOUBLE, MPI_SUM) number 2 on MPI_COMM_WORLD", "", CommName{}},
		{sum, "MPI_Waitany", "MPI_Iallreduce(3 MPI_DOUBLE, MPI_SUM) number 2 on MPI_COMM_WORLD", "MPI_Waitany",
			CommName{}},
		{sum, "MPI_Intercomm_create", "MPI_Allreduce(3 MPI_DOUBLE, MPI_SUM) number 2 on MPI_COMM_WORLD",
			"MPI_Intercomm_create", CommName{}},
		{pairs, "", "MPI_Reduce(2 elements of 24 bytes, an operator of the program's, or of pairs or long doubles, root 1) number 2 on MPI_COMM_WORLD", "", CommName{}},
		{step, "MPI_Reduce_scatter", "MPI_Reduce_scatter(3 MPI_DOUBLE, MPI_SUM) number 2 on MPI_COMM_WORLD", "",
			CommName{}},
		{step, "MPI_Wait", "MPI_Ireduce_scatter(3 MPI_DOUBLE, MPI_SUM) number 2 on MPI_COMM_WORLD", "MPI_Wait",
			CommName{}},
		{across, "MPI_Bcast", "MPI_Bcast() number 2 on MPI_COMM_WORLD", "", CommName{}},
		{across, "MPI_Wait", "MPI_Ibcast() number 2 on MPI_COMM_WORLD", "MPI_Wait", CommName{}},
		{window, "MPI_Win_create", "MPI_Win_create() number 2 on MPI_COMM_WORLD", "", CommName{}},
		{shared, "", "MPI_Intercomm_create() number 2 on MPI_COMM_WORLD", "", CommName{}},
		{blocks, "", "MPI_Gatherv(root 1) number 2 on MPI_COMM_WORLD", "", CommName{}},
		{split, "MPI_Comm_split", "MPI_Comm_split() number 4 on another communicator", "", CommName{}},
		{recv, "MPI_Recv", "MPI_Recv(5 bytes from rank 1, tag 9) on MPI_COMM_WORLD", "", CommName{}},
		{recv, "MPI_Waitall", "MPI_Irecv(5 bytes from rank 1, tag 9) on MPI_COMM_WORLD", "MPI_Waitall", CommName{}},
		{recv, "MPI_Sendrecv", "MPI_Sendrecv(5 bytes from rank 1, tag 9) on MPI_COMM_WORLD", "", CommName{}},
		{send, "MPI_Ssend", "MPI_Ssend(5 bytes to rank 1 of MPI_COMM_WORLD, tag 9) on another communicator; rank 1 holds 3 messages of this rank that it has not received", "", CommName{}},
		{send, "MPI_Wait", "MPI_Isend(5 bytes to rank 1 of MPI_COMM_WORLD, tag 9) on ocean; rank 1 holds 3 messages of this rank that it has not received", "MPI_Wait", CommName{"ocean", false}},
		{own, "MPI_Wait", "MPI_Allreduce_init(3 MPI_DOUBLE, MPI_SUM) number 2 on MPI_COMM_WORLD", "MPI_Wait",
			CommName{"MPI_COMM_WORLD", true}},
		{probe, "MPI_Mprobe", "MPI_Mprobe(from any rank, any tag) on MPI_COMM_WORLD", "", CommName{}},
		{Call{Kind: calls.Wait, Peer: -1}, "MPI_Finalize", "MPI_Finalize()", "", CommName{}},
		{Call{Kind: calls.Wait, Peer: -1}, "", "MPI_Wait()", "", CommName{}},
	} {
		if text, site := (Recording{Call: tt.c}).MPI(tt.function, tt.on); text != tt.text || site != tt.site {
			t.Errorf("%v in %s: %q at %q, want %q at %q", tt.c, tt.function, text, site, tt.text, tt.site)
		}
	}
}
