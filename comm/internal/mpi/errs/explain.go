package errs

import (
	"errors"
	"fmt"
	"strings"

	"gompi/comm"
	"gompi/comm/internal/call"
	"gompi/internal/mem"
)

// Explain says err as a user of MPI would: comm's errors name its own functions and types.
func Explain(err error) string {
	var e *comm.Error
	if !errors.As(err, &e) {
		return err.Error()
	}
	text := fmt.Sprintf("rank %d: ", e.Rank)
	if e.Peer >= 0 {
		text += fmt.Sprintf("peer %d (host %s): ", e.Peer, e.Host)
	}
	var m *comm.MismatchError
	if errors.As(err, &m) && m.Call != m.PeerCall {
		return text + fmt.Sprintf("collective %d: rank %d called %s, but rank %d called %s",
			m.Seq, m.Rank, callName(&m.Call), m.Peer, callName(&m.PeerCall))
	}
	return text + e.Err.Error()
}

// callName returns a collective with its arguments: "MPI_Allreduce(1 MPI_INT, MPI_SUM)". Where no
// operator combines elements they are bytes.
func callName(f *call.Fingerprint) string {
	var args []string
	switch {
	case f.Kind.LocalCounts() || f.Type == mem.NoType:
	case f.Type == mem.U8 && f.Op == mem.NoOp:
		args = append(args, fmt.Sprintf("%d bytes", f.Count))
	default:
		args = append(args, fmt.Sprintf("%d %s", f.Count, typeName(f)))
	}
	if f.Op != mem.NoOp {
		args = append(args, opName(f.Op))
	}
	if f.Kind.Rooted() {
		args = append(args, fmt.Sprintf("root %d", f.Root))
	}
	return kindName(f.Kind) + "(" + strings.Join(args, ", ") + ")"
}

func kindName(k call.Kind) string {
	switch k {
	case call.ReduceScatter:
		return "MPI_Reduce_scatter"
	case call.ReduceScatterBlock:
		return "MPI_Reduce_scatter_block"
	case call.Dup, call.Split, call.Create:
		return "MPI_Comm_" + k.String()
	}
	name := k.String()
	return "MPI_" + strings.ToUpper(name[:1]) + name[1:]
}

// typeName returns the name that C has for the elements of a reduction.
func typeName(f *call.Fingerprint) string {
	names := map[mem.Type]string{
		mem.I8: "MPI_INT8_T", mem.I16: "MPI_SHORT", mem.I32: "MPI_INT", mem.I64: "MPI_LONG",
		mem.U8: "MPI_UINT8_T", mem.U16: "MPI_UNSIGNED_SHORT", mem.U32: "MPI_UNSIGNED", mem.U64: "MPI_UNSIGNED_LONG",
		mem.F32: "MPI_FLOAT", mem.F64: "MPI_DOUBLE", mem.C64: "MPI_C_FLOAT_COMPLEX", mem.C128: "MPI_C_DOUBLE_COMPLEX",
		mem.Bool: "MPI_C_BOOL",
	}
	if name, ok := names[f.Type]; ok {
		return name
	}
	return fmt.Sprintf("elements of %d bytes", f.Size)
}

func opName(op mem.Op) string {
	if op == mem.Custom {
		return "an operator of the program's, or of pairs or long doubles"
	}
	return "MPI_" + strings.ToUpper(op.String())
}
