package mpi

import (
	"unsafe"

	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/comms"
	"gompi/mpi/internal/dtypes"
	"gompi/mpi/internal/errs"
	"gompi/mpi/internal/files"
	"gompi/mpi/internal/infos"
	"gompi/mpi/internal/ops"
	"gompi/mpi/internal/p2p"
	"gompi/mpi/internal/windows"
)

// Args are the arguments of a call, as the face stores them: numbers, addresses and the numbers
// of handles. They stay in C's memory.
type Args [24]int64

func (a *Args) int(i int) int           { return int(a[i]) }
func (a *Args) flag(i int) bool         { return a[i] != 0 }
func (a *Args) address(i int) abi.Addr  { return abi.Addr(a[i]) }
func (a *Args) array(i int) abi.Array   { return abi.Array(a[i]) }
func (a *Args) text(i int) abi.Text     { return abi.Text(a[i]) }
func (a *Args) handle(i int) abi.Handle { return abi.Handle(a[i]) }

func (a *Args) handles(i, n int) []abi.Handle {
	if n <= 0 {
		return nil
	}
	return unsafe.Slice((*abi.Handle)(a.address(i).Pointer()), n)
}

func (a *Args) status(i int) *abi.Status { return (*abi.Status)(a.address(i).Pointer()) }

// statuses returns nil if they are to be ignored.
func (a *Args) statuses(i, n int) []abi.Status {
	if n <= 0 || a[i] == 0 {
		return nil
	}
	return unsafe.Slice(a.status(i), n)
}

func (a *Args) setInt(i, x int)               { a[i] = int64(x) }
func (a *Args) setAddress(i int, x abi.Addr)  { a[i] = int64(x) }
func (a *Args) setHandle(i int, h abi.Handle) { a[i] = int64(h) }

func (a *Args) setFlag(i int, x bool) {
	a[i] = 0
	if x {
		a[i] = 1
	}
}

func (a *Args) comm(i int) *comms.Comm            { return comms.Registry.Find(abi.Handle(a[i])) }
func (a *Args) datatype(i int) *dtypes.Datatype   { return dtypes.Registry.Find(abi.Handle(a[i])) }
func (a *Args) op(i int) *ops.Op                  { return ops.Registry.Find(abi.Handle(a[i])) }
func (a *Args) group(i int) *comms.Group          { return comms.Groups.Find(abi.Handle(a[i])) }
func (a *Args) request(i int) *p2p.Request        { return p2p.Requests.Find(abi.Handle(a[i])) }
func (a *Args) errhandler(i int) *errs.Errhandler { return errs.Handlers.Find(abi.Handle(a[i])) }
func (a *Args) session(i int) *comms.Session      { return comms.Sessions.Find(abi.Handle(a[i])) }
func (a *Args) info(i int) *infos.Info            { return infos.Registry.Find(abi.Handle(a[i])) }
func (a *Args) win(i int) *windows.Win            { return windows.Registry.Find(abi.Handle(a[i])) }
func (a *Args) file(i int) *files.File            { return files.Registry.Find(abi.Handle(a[i])) }

func (a *Args) setComm(i int, x *comms.Comm)            { a.setHandle(i, comms.Registry.HandleOf(x)) }
func (a *Args) setDatatype(i int, x *dtypes.Datatype)   { a.setHandle(i, dtypes.Registry.HandleOf(x)) }
func (a *Args) setOp(i int, x *ops.Op)                  { a.setHandle(i, ops.Registry.HandleOf(x)) }
func (a *Args) setGroup(i int, x *comms.Group)          { a.setHandle(i, comms.Groups.HandleOf(x)) }
func (a *Args) setRequest(i int, x *p2p.Request)        { a.setHandle(i, p2p.Requests.HandleOf(x)) }
func (a *Args) setMessage(i int, x *p2p.Message)        { a.setHandle(i, p2p.Messages.HandleOf(x)) }
func (a *Args) setErrhandler(i int, x *errs.Errhandler) { a.setHandle(i, errs.Handlers.HandleOf(x)) }
func (a *Args) setSession(i int, x *comms.Session)      { a.setHandle(i, comms.Sessions.HandleOf(x)) }
func (a *Args) setInfo(i int, x *infos.Info)            { a.setHandle(i, infos.Registry.HandleOf(x)) }
func (a *Args) setWin(i int, x *windows.Win)            { a.setHandle(i, windows.Registry.HandleOf(x)) }
func (a *Args) setFile(i int, x *files.File)            { a.setHandle(i, files.Registry.HandleOf(x)) }
