package seg

import (
	"cmp"
	"fmt"
	"strings"

	"gompi/internal/calls"
	"gompi/internal/mem"
)

// MPI describes the call of an MPI program in terms of MPI, and returns its place in the program.
// function is the MPI function that the rank waits in, "" if unknown, and on the communicator.
func (r Recording) MPI(function string, on CommName) (text, site string) {
	c, name := r.Call, r.Function()
	switch {
	case strings.HasPrefix(function, "MPI_Wait") && name != "":
		if name, site = r.called().MPINonblocking(), function; on.Persistent {
			name = r.Function() + "_init"
		}
	case r.Kind.Collective() && function != name:
		site = function
	case function != "":
		name = function
	}
	if c.Count == 0 {
		c.Type = mem.NoType // the call has several counts, or none
	}
	text = c.mpi(name)
	if r.Kind.Collective() && r.Seq > 0 {
		text += fmt.Sprintf(" number %d", r.Seq)
	}
	switch {
	case !r.Kind.Collective() && !r.Kind.Message():
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

// MPI describes c in terms of MPI: "MPI_Allreduce(1 MPI_INT, MPI_SUM)". Elements that no operator
// combines are bytes.
func (c Call) MPI() string { return c.mpi(c.Function()) }

// Function returns the MPI name of c.
func (c Call) Function() string { return c.called().MPI() }

// called returns the call that the program has made, of which c may be a part.
func (c Call) called() calls.Kind { return cmp.Or(c.Of, c.Kind) }

func (c Call) mpi(name string) string {
	var args []string
	if c.Of != calls.None && !c.Kind.Reduces() {
		c.Type = mem.NoType // the elements are not the program's
	}
	if c.Type != mem.NoType {
		args = append(args, c.mpiElements())
	}
	if c.Op != mem.NoOp {
		args = append(args, mpiOp(c.Op))
	}
	switch {
	case c.Kind.Message():
		args = []string{strings.TrimPrefix(strings.Join(args, ", ")+" "+c.mpiPeer(), " ")}
		if args = append(args, fmt.Sprintf("tag %d", c.Seq)); c.Seq < 0 {
			args[1] = "any tag"
		}
	case c.Kind.Rooted() && c.Of == calls.None && c.Peer >= 0:
		args = append(args, fmt.Sprintf("root %d", c.Peer))
	}
	return name + "(" + strings.Join(args, ", ") + ")"
}

// mpiPeer names the source or destination of a message. The recorder has ranks of the job.
func (c Call) mpiPeer() string {
	peer := "from "
	if c.Kind == calls.Send {
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

// mpiTypes are the C names of the elements of reductions.
var mpiTypes = map[mem.Type]string{
	mem.I8: "MPI_INT8_T", mem.I16: "MPI_SHORT", mem.I32: "MPI_INT", mem.I64: "MPI_LONG",
	mem.U8: "MPI_UINT8_T", mem.U16: "MPI_UNSIGNED_SHORT", mem.U32: "MPI_UNSIGNED", mem.U64: "MPI_UNSIGNED_LONG",
	mem.F32: "MPI_FLOAT", mem.F64: "MPI_DOUBLE", mem.C64: "MPI_C_FLOAT_COMPLEX", mem.C128: "MPI_C_DOUBLE_COMPLEX",
	mem.Bool: "MPI_C_BOOL",
}
