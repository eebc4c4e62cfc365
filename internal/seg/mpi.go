package seg

import (
	"fmt"
	"strings"

	"gompi/internal/mem"
)

// MPI describes the call of an MPI program as its user would, and returns where in the program it
// is. function is the function of MPI that the rank waits in, "" if that is not known, and on the
// communicator.
func (r Recording) MPI(function string, on CommName) (text, site string) {
	c, name := r.Call, mpiNames[r.Kind]
	switch {
	case strings.HasPrefix(function, "MPI_Wait") && name != "":
		if name, site = nonblocking(r.Kind), function; on.Persistent {
			name = mpiNames[r.Kind] + "_init"
		}
	case r.Kind.Collective() && function != name:
		site = function
	case function != "":
		name = function
	}
	if c.Count == 0 {
		c.Type = mem.NoType // it has several counts, or none
	}
	text = c.mpi(name)
	if r.Kind.Collective() && r.Seq > 0 {
		text += fmt.Sprintf(" number %d", r.Seq)
	}
	switch {
	case !r.Kind.Collective() && !r.Kind.message():
	case r.Comm == 0:
		text += " on MPI_COMM_WORLD"
	case on.Text != "":
		text += " on " + on.Text
	default:
		text += " on another communicator"
	}
	if r.Held > 0 {
		text += fmt.Sprintf("; rank %d holds %d messages of this rank that it has not received", r.Peer, r.Held)
	}
	return text, site
}

// MPI describes c as a user of MPI would: "MPI_Allreduce(1 MPI_INT, MPI_SUM)". Where no operator
// combines elements they are bytes.
func (c Call) MPI() string { return c.mpi(mpiNames[c.Kind]) }

func (c Call) mpi(name string) string {
	var args []string
	if c.Type != mem.NoType {
		args = append(args, c.mpiElements())
	}
	if c.Op != mem.NoOp {
		args = append(args, mpiOp(c.Op))
	}
	switch {
	case c.Kind.message():
		args = []string{strings.TrimPrefix(strings.Join(args, ", ")+" "+c.mpiPeer(), " ")}
		if args = append(args, fmt.Sprintf("tag %d", c.Seq)); c.Seq < 0 {
			args[1] = "any tag"
		}
	case c.Kind.Rooted():
		args = append(args, fmt.Sprintf("root %d", c.Peer))
	}
	return name + "(" + strings.Join(args, ", ") + ")"
}

// mpiPeer returns whom a message is from or to. The recorder has ranks of the job.
func (c Call) mpiPeer() string {
	peer := "from "
	if c.Kind == Send {
		peer = "to "
	}
	if c.Peer < 0 {
		return peer + "any rank"
	}
	peer += fmt.Sprintf("rank %d", c.Peer)
	if c.Comm != 0 {
		peer += " of MPI_COMM_WORLD"
	}
	return peer
}

func (c Call) mpiElements() string {
	switch name := mpiTypes[c.Type]; {
	case c.Type == mem.U8 && c.Op == mem.NoOp:
		return fmt.Sprintf("%d bytes", c.Count)
	case name != "":
		return fmt.Sprintf("%d %s", c.Count, name)
	}
	return fmt.Sprintf("%d elements of %d bytes", c.Count, c.Size)
}

func mpiOp(op mem.Op) string {
	if op == mem.Custom {
		return "an operator of the program's, or of pairs or long doubles"
	}
	return "MPI_" + strings.ToUpper(op.String())
}

// message reports whether k is a message or a probe for one.
func (k Kind) message() bool { return k >= Send && k <= Probe }

// mpiNames are the names that MPI has for blocking calls.
var mpiNames = func() (names [numKinds]string) {
	for k := Barrier; k <= Exscan; k++ {
		names[k] = "MPI_" + strings.ToUpper(k.String()[:1]) + k.String()[1:]
	}
	names[ReduceScatter], names[ReduceScatterBlock] = "MPI_Reduce_scatter", "MPI_Reduce_scatter_block"
	names[Dup], names[Split], names[SplitHost], names[Create] = "MPI_Comm_dup", "MPI_Comm_split", "MPI_Comm_split_type", "MPI_Comm_create"
	names[Send], names[Recv], names[Probe], names[Wait] = "MPI_Send", "MPI_Recv", "MPI_Probe", "MPI_Wait"
	return names
}()

// nonblocking returns the name of the call that starts what a call of kind k does.
func nonblocking(k Kind) string {
	switch {
	case k == Dup:
		return "MPI_Comm_idup"
	case k == Send, k == Recv, k > NoKind && k <= Exscan:
		name := strings.TrimPrefix(mpiNames[k], "MPI_")
		return "MPI_I" + strings.ToLower(name[:1]) + name[1:]
	}
	return mpiNames[k]
}

// mpiTypes are the names that C has for the elements of reductions.
var mpiTypes = map[mem.Type]string{
	mem.I8: "MPI_INT8_T", mem.I16: "MPI_SHORT", mem.I32: "MPI_INT", mem.I64: "MPI_LONG",
	mem.U8: "MPI_UINT8_T", mem.U16: "MPI_UNSIGNED_SHORT", mem.U32: "MPI_UNSIGNED", mem.U64: "MPI_UNSIGNED_LONG",
	mem.F32: "MPI_FLOAT", mem.F64: "MPI_DOUBLE", mem.C64: "MPI_C_FLOAT_COMPLEX", mem.C128: "MPI_C_DOUBLE_COMPLEX",
	mem.Bool: "MPI_C_BOOL",
}
