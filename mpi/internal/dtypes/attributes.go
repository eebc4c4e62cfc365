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
	return t.Put(attrs.KindDatatype, t.Handle, number, value, false)
}

func TypeGetAttr(t *Datatype, number int) (abi.Addr, bool, error) {
	return t.Get(attrs.KindDatatype, number)
}

func TypeDeleteAttr(t *Datatype, number int) error {
	return t.Remove(attrs.KindDatatype, t.Handle, number)
}
