package p2p

import (
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/dtypes"
	"gompi/mpi/internal/errs"
)

func GetCount(st *abi.Status, t *dtypes.Datatype) (int, error) {
	return t.Count(int(st.Bytes)), nil
}

func GetElements(st *abi.Status, t *dtypes.Datatype) (int, error) {
	return t.Elements(int(st.Bytes)), nil
}

// StatusSetElements takes counts of more bytes than any memory has: only a status holds these.
func StatusSetElements(st *abi.Status, t *dtypes.Datatype, n int) error {
	if err := dtypes.Check(min(n, 1), t); err != nil {
		return err
	}
	if size := max(t.Size(), 1); n/max(t.Elements(size), 1) >= (1<<63-1)/size {
		return errs.New(errs.Count, "%d elements of a type of %d bytes: want fewer than 2^63 bytes in all", n, size)
	}
	st.Bytes = int64(t.Bytes(n))
	return nil
}

func StatusSetCancelled(st *abi.Status, flag bool) error {
	st.Cancelled = 0
	if flag {
		st.Cancelled = 1
	}
	return nil
}

func TestCancelled(st *abi.Status) (bool, error) { return st.Cancelled > 0, nil }
