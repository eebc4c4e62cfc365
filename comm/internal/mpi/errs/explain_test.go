package errs

import (
	"testing"

	"gompi/comm"
	"gompi/comm/internal/call"
)

func TestMismatchesAreInTheTermsOfMPI(t *testing.T) {
	doubles, ints := new(call.Call), new(call.Call)
	doubles.Reduce(1, comm.Of(make([]float64, 3)), comm.Buffer{}, call.Op{Kind: comm.Max})
	ints.ReduceScatterBlock(comm.Of(make([]int32, 4)), comm.Of(make([]int32, 2)), call.Op{Kind: comm.Sum})
	err := &comm.Error{Op: "reduce", Comm: "MPI_COMM_WORLD", Rank: 0, Peer: -1, Site: "a.go:1",
		Err: &comm.MismatchError{Seq: 7, Rank: 0, Peer: 1, Call: doubles.Fingerprint, PeerCall: ints.Fingerprint}}
	const want = "rank 0: collective 7: rank 0 called MPI_Reduce(3 MPI_DOUBLE, MPI_MAX, root 1), but rank 1 called MPI_Reduce_scatter_block(2 MPI_INT, MPI_SUM)"
	if got := Explain(err); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	bytes := new(call.Call).Bcast(0, comm.Of(make([]byte, 9)))
	if got, want := calledAs(&bytes.Fingerprint), "MPI_Bcast(9 bytes, root 0)"; got != want {
		t.Errorf("%s: want %s", got, want)
	}
}
