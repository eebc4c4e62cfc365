package p2p

import (
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/comms"
	"gompi/mpi/internal/dtypes"
	"gompi/mpi/internal/errs"
)

func Pack(in abi.Addr, n int, t *dtypes.Datatype, out abi.Addr, size int, position *int, c *comms.Comm) error {
	return pack(in, n, t, out, size, position)
}

func pack(in abi.Addr, n int, t *dtypes.Datatype, out abi.Addr, size int, position *int) error {
	if err := dtypes.Check(n, t); err != nil {
		return err
	}
	bytes := n * t.Size()
	if *position < 0 || bytes > size-*position {
		return errs.New(errs.Truncate, "%d bytes from %d on do not fit into %d", bytes, *position, size)
	}
	t.Pack(out.Bytes(size)[*position:], uintptr(in), n)
	*position += bytes
	return nil
}

func Unpack(in abi.Addr, size int, position *int, out abi.Addr, n int, t *dtypes.Datatype, c *comms.Comm) error {
	if err := dtypes.Check(n, t); err != nil {
		return err
	}
	bytes := n * t.Size()
	if *position < 0 || bytes > size-*position {
		return errs.New(errs.Truncate, "%d bytes are not there from %d of %d on", bytes, *position, size)
	}
	t.Unpack(uintptr(out), n, in.Bytes(size)[*position:][:bytes])
	*position += bytes
	return nil
}

func PackSize(n int, t *dtypes.Datatype, c *comms.Comm) (int, error) {
	if err := dtypes.Check(n, t); err != nil {
		return 0, err
	}
	return n * t.Size(), nil
}

func checkExternal(name abi.Text, n int, t *dtypes.Datatype) error {
	if s := name.String(); s != "external32" {
		return errs.New(errs.Arg, "the data representation is %q: want external32", s)
	}
	return dtypes.Check(n, t)
}

func PackExternal(rep abi.Text, in abi.Addr, n int, t *dtypes.Datatype, out abi.Addr, size int, position *int) error {
	if err := checkExternal(rep, n, t); err != nil {
		return err
	}
	bytes := t.ExternalSize(n)
	if *position < 0 || bytes > size-*position {
		return errs.New(errs.Truncate, "%d bytes from %d on do not fit into %d", bytes, *position, size)
	}
	_, err := t.PackExternal(out.Bytes(size)[*position:], uintptr(in), n)
	*position += bytes
	return err
}

func UnpackExternal(rep abi.Text, in abi.Addr, size int, position *int, out abi.Addr, n int, t *dtypes.Datatype) error {
	if err := checkExternal(rep, n, t); err != nil {
		return err
	}
	bytes := t.ExternalSize(n)
	if *position < 0 || bytes > size-*position {
		return errs.New(errs.Truncate, "%d bytes are not there from %d of %d on", bytes, *position, size)
	}
	_, err := t.UnpackExternal(uintptr(out), n, in.Bytes(size)[*position:][:bytes])
	*position += bytes
	return err
}

func PackExternalSize(rep abi.Text, n int, t *dtypes.Datatype) (int, error) {
	if err := checkExternal(rep, n, t); err != nil {
		return 0, err
	}
	return t.ExternalSize(n), nil
}
