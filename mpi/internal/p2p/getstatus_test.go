package p2p

import (
	"testing"

	"gompi/mpi/internal/abi"
)

// A null request has the empty status, whose error is MPI_SUCCESS.
func TestANullRequestHasTheEmptyStatus(t *testing.T) {
	st := abi.Status{Source: 5, Tag: 6, Error: -1, Cancelled: -1, Bytes: 7}
	if over, err := RequestGetStatus(nil, &st); !over || err != nil || st != abi.OfNothing {
		t.Errorf("over %v, %v, %+v", over, err, st)
	}
}
