package mpi

import (
	"fmt"
	"os"

	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/comms"
	"gompi/mpi/internal/errs"
	"gompi/mpi/internal/infos"
)

// Use is called before anything else. The functions that MPI allows at any time work from then on.
func Use(f abi.Face) { abi.C = f }

// Init is MPI_Init.
func Init() error {
	if err := job.enter(); err != nil {
		return err
	}
	comms.Begin()
	return nil
}

// Finalize is MPI_Finalize. The result is the class of the error.
func Finalize() abi.Class {
	err := comms.End()
	if err == nil {
		err = job.end(true)
	}
	if err != nil {
		comms.CannotLeave(err)
		return comms.Unattached.Raise("MPI_Finalize", err)
	}
	return 0
}

// InfoCreateEnv returns the facts known before Init.
func InfoCreateEnv(argc int, argv abi.Array) (*infos.Info, error) {
	return infos.New(startInfo()...), nil
}

func startInfo() []string {
	pairs := []string{"thread_level", "MPI_THREAD_MULTIPLE"}
	if exe, err := os.Executable(); err == nil {
		pairs = append(pairs, "command", exe)
	}
	if dir, err := os.Getwd(); err == nil {
		pairs = append(pairs, "wdir", dir)
	}
	return pairs
}

// Unsupported is the error of a function that is not implemented. h is its communicator, if any.
func Unsupported(h abi.Handle, name string) abi.Class {
	return comms.Registry.Find(h).Raise(name, errs.New(errs.Unsupported, "not implemented by gompi"))
}

// Length returns the length of an array argument of a communicator's call: an entry for each peer
// if what is 0, for each source of the topology if 1, for each destination if 2.
func Length(what int, h abi.Handle) int {
	c := comms.Registry.Find(h)
	switch {
	case c == nil:
		return 0
	case what == 0:
		return c.Peers()
	}
	in, out := c.Degrees()
	if what == 1 {
		return in
	}
	return out
}

func Abort(c *comms.Comm, code int) error {
	if err := comms.World.P2P.Abort(code, fmt.Sprintf("MPI_Abort(%s, %d)", c.Name(), code)); err != nil {
		return err
	}
	abi.C.Flush()
	abi.C.Exit(code)
	return nil
}

func GetProcessorName(name abi.Text) (int, error) {
	return name.Set(hostName(), abi.C.MaxProcessorName), nil
}

// hostName returns this host's own name, valid on other hosts. The launcher's name for this host
// may be "localhost", or the name of a login.
func hostName() string {
	if name, err := os.Hostname(); err == nil {
		return name
	}
	return comms.World.P2P.Host(comms.World.P2P.Rank())
}

// AbiGetInfo returns the widths of integers (MPI 5.0).
func AbiGetInfo() (*infos.Info, error) {
	return infos.New("mpi_aint_size", "8", "mpi_count_size", "8", "mpi_offset_size", "8"), nil
}

// GetHwResourceInfo knows of no parts of a host that ranks are bound to.
func GetHwResourceInfo() (*infos.Info, error) { return infos.New(), nil }

func AllocMem(n int, info *infos.Info) (abi.Addr, error) {
	if n < 0 {
		return 0, errs.New(errs.Arg, "the size is %d: want 0 or more", n)
	}
	at := abi.C.Alloc(max(n, 1))
	if at == 0 {
		return 0, errs.New(errs.NoMem, "there are no %d bytes", n)
	}
	return at, nil
}

func FreeMem(at abi.Addr) error {
	abi.C.Free(at)
	return nil
}

func GetAddress(at abi.Addr) (int, error) { return int(at), nil }
