package mpi

import "gompi/comm/internal/mpi/table"

// The objects that have handles.
var (
	communicators = newRegistry[Comm](table.CommNull)
	datatypes     = newRegistry[Datatype](table.DatatypeNull)
	operators     = newRegistry[Op](table.OpNull).lateReuse()
	groups        = newRegistry[Group](table.GroupNull)
	requests      = newRegistry[Request](table.RequestNull)
	messages      = newRegistry[Message](table.MessageNull)
	errhandlers   = newRegistry[Errhandler](table.ErrhandlerNull).lateReuse()
	infos         = newRegistry[Info](table.InfoNull)
)

func (a *Args) comm(i int) *Comm             { return communicators.find(Handle(a[i])) }
func (a *Args) datatype(i int) *Datatype     { return datatypes.find(Handle(a[i])) }
func (a *Args) op(i int) *Op                 { return operators.find(Handle(a[i])) }
func (a *Args) group(i int) *Group           { return groups.find(Handle(a[i])) }
func (a *Args) request(i int) *Request       { return requests.find(Handle(a[i])) }
func (a *Args) errhandler(i int) *Errhandler { return errhandlers.find(Handle(a[i])) }
func (a *Args) info(i int) *Info             { return infos.find(Handle(a[i])) }

func (a *Args) setComm(i int, x *Comm) {
	a[i] = int64(communicators.null)
	if x != nil {
		a[i] = int64(x.handle)
	}
}

func (a *Args) setDatatype(i int, x *Datatype) {
	a[i] = int64(datatypes.null)
	if x != nil {
		a[i] = int64(x.handle)
	}
}

func (a *Args) setOp(i int, x *Op) {
	a[i] = int64(operators.null)
	if x != nil {
		a[i] = int64(x.handle)
	}
}

func (a *Args) setGroup(i int, x *Group) {
	a[i] = int64(groups.null)
	if x != nil {
		a[i] = int64(x.handle)
	}
}

func (a *Args) setRequest(i int, x *Request) {
	a[i] = int64(requests.null)
	if x != nil {
		a[i] = int64(x.handle)
	}
}

func (a *Args) setMessage(i int, x *Message) {
	a[i] = int64(messages.null)
	if x != nil {
		a[i] = int64(x.handle)
	}
}

func (a *Args) setErrhandler(i int, x *Errhandler) {
	a[i] = int64(errhandlers.null)
	if x != nil {
		a[i] = int64(x.handle)
	}
}

func (a *Args) setInfo(i int, x *Info) {
	a[i] = int64(infos.null)
	if x != nil {
		a[i] = int64(x.handle)
	}
}
