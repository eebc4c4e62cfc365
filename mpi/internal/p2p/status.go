package p2p

import (
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/dtypes"
	"gompi/mpi/internal/errs"
)

func GetCount(st *abi.Status, t *dtypes.Datatype) (int, error) {
	if t == nil {
		return 0, errs.New(errs.Type, "the datatype is not valid")
	}
	return t.Count(int(st.Bytes)), nil
}

func GetElements(st *abi.Status, t *dtypes.Datatype) (int, error) {
	if t == nil {
		return 0, errs.New(errs.Type, "the datatype is not valid")
	}
	return t.Elements(int(st.Bytes)), nil
}

func GetElementsX(st *abi.Status, t *dtypes.Datatype) (int, error) { return GetElements(st, t) }

func StatusSetElements(st *abi.Status, t *dtypes.Datatype, n int) error {
	if err := dtypes.Check(n, t); err != nil {
		return err
	}
	st.Bytes = int64(t.Bytes(n))
	return nil
}

func StatusSetElementsX(st *abi.Status, t *dtypes.Datatype, n int) error {
	return StatusSetElements(st, t, n)
}

func StatusSetCancelled(st *abi.Status, flag bool) error {
	st.Cancelled = 0
	if flag {
		st.Cancelled = 1
	}
	return nil
}

func TestCancelled(st *abi.Status) (bool, error) { return st.Cancelled > 0, nil }
