package dtypes

import (
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/attrs"
)

func TypeCreateKeyval(copyFn, deleteFn, extra abi.Addr) (int, error) {
	return attrs.NewKeyval(attrs.KindDatatype, copyFn, deleteFn, extra)
}

func TypeFreeKeyval(number *int) error { return attrs.FreeKeyval(attrs.KindDatatype, number) }

func TypeSetAttr(t *Datatype, number int, value abi.Addr) error {
	if err := CheckType(t); err != nil {
		return err
	}
	return t.Put(attrs.KindDatatype, t.Handle, number, value, false)
}

func TypeGetAttr(t *Datatype, number int) (abi.Addr, bool, error) {
	if err := CheckType(t); err != nil {
		return 0, false, err
	}
	return t.Get(attrs.KindDatatype, number)
}

func TypeDeleteAttr(t *Datatype, number int) error {
	if err := CheckType(t); err != nil {
		return err
	}
	return t.Remove(attrs.KindDatatype, t.Handle, number)
}
