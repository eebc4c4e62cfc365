package dtypes

import (
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/attrs"
)

func TypeSetAttr(t *Datatype, number int, value abi.Addr) error {
	return t.Put(attrs.KindDatatype, t.Handle, number, value, false)
}

func TypeGetAttr(t *Datatype, number int) (abi.Addr, bool, error) {
	return t.Get(attrs.KindDatatype, number)
}

func TypeDeleteAttr(t *Datatype, number int) error {
	return t.Remove(attrs.KindDatatype, t.Handle, number)
}
