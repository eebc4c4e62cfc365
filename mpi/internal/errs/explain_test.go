package errs

import (
	"strings"
	"testing"

	"gompi/internal/core"
	"gompi/internal/core/call"
	"gompi/internal/mem"
	"gompi/mpi/internal/abi"
)

func TestMismatchesAreInTheTermsOfMPI(t *testing.T) {
	doubles, ints := new(call.Call), new(call.Call)
	doubles.Reduce(1, mem.Of(make([]float64, 3)), mem.Buffer{}, call.Op{Kind: mem.Max})
	ints.ReduceScatterBlock(mem.Of(make([]int32, 4)), mem.Of(make([]int32, 2)), call.Op{Kind: mem.Sum})
	err := &core.Error{Op: "reduce", Comm: "MPI_COMM_WORLD", Rank: 0, Peer: -1, Site: "a.go:1",
		Err: &core.MismatchError{Seq: 7, Rank: 0, Peer: 1, Call: doubles.Fingerprint, PeerCall: ints.Fingerprint}}
	const want = "rank 0: collective 7: rank 0 called MPI_Reduce(3 MPI_DOUBLE, MPI_MAX, root 1), but rank 1 called MPI_Reduce_scatter_block(2 MPI_INT, MPI_SUM)"
	if got := Explain(err); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	bytes := new(call.Call).Bcast(0, mem.Of(make([]byte, 9)))
	if got, want := calledAs(&bytes.Fingerprint), "MPI_Bcast(9 bytes, root 0)"; got != want {
		t.Errorf("%s: want %s", got, want)
	}
}

func TestEveryClassHasASentence(t *testing.T) {
	for c, is := range classes {
		if !strings.HasPrefix(is.name, "MPI_") || !strings.Contains(is.text, " ") {
			t.Errorf("class %d: %q, %q", c, is.name, is.text)
		}
	}
	var n notedErrors
	if got, want := n.describe(Truncate),
		"MPI_ERR_TRUNCATE: the message is longer than the buffer that receives it"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	n.text = map[abi.Class]string{Truncate: "MPI_Recv on x: 8 bytes"}
	if got, want := n.describe(Truncate),
		"MPI_ERR_TRUNCATE: the message is longer than the buffer that receives it: MPI_Recv on x: 8 bytes"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
