// Package calls is the table of a rank's calls. For each call it has the number and the names in
// gompi and MPI, and for a collective all of its properties, except the algorithm. The engine, the
// flight recorder, the launcher's reports, the simulator and the C libraries use the table.
//
// CONTRIBUTING.md lists the steps to add a collective.
package calls

import (
	"fmt"
	"strings"
)

func (k Kind) String() string {
	if name := Table[k].Name; name != "" {
		return name
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// MPI returns the name of MPI's blocking function, "" if MPI has none.
func (k Kind) MPI() string { return Table[k].MPI }

// MPINonblocking returns the name of MPI's function that starts k, or of the blocking one.
func (k Kind) MPINonblocking() string {
	name, ok := strings.CutPrefix(Table[k].MPI, "MPI_")
	switch {
	case !ok:
		return ""
	case k == Dup:
		return "MPI_Comm_idup"
	case k == Send, k == Recv, k.Exchanges():
		return "MPI_I" + strings.ToLower(name[:1]) + name[1:]
	}
	return Table[k].MPI
}

// Collective reports whether all ranks of a communicator call k.
func (k Kind) Collective() bool { return Table[k].Needs != Never || Table[k].Recv.Layout != Absent }

// Exchanges reports whether k is a collective over data of the program that no other collective
// implements.
func (k Kind) Exchanges() bool { return k.Collective() && Table[k].As == None }

// Collectives are all kinds that are Collective, in the order of their numbers.
var Collectives = kinds(Kind.Collective)

// Exchanges are all kinds that Exchange.
var Exchanges = kinds(Kind.Exchanges)

func kinds(of func(Kind) bool) (all []Kind) {
	for k := range Kind(Count) {
		if of(k) {
			all = append(all, k)
		}
	}
	return all
}

// As returns the collective that implements k. If k makes communicators or memory, that collective
// exchanges words of the engine.
func (k Kind) As() Kind {
	if as := Table[k].As; as != None {
		return as
	}
	return k
}

// Message reports whether k is a message or a probe for one.
func (k Kind) Message() bool { return k == Send || k == Recv || k == Probe }

// Rooted reports whether k is a collective with a root.
func (k Kind) Rooted() bool { return Table[k].Rooted }

// Reduces reports whether the collective has an operator.
func (k Kind) Reduces() bool { return Table[k].Reduces }

// InC reports whether the C libraries do short calls of k themselves.
func (k Kind) InC() bool { return Table[k].InC }

// LocalCounts reports whether only the ranks that exchange a block know its length. Then no rank
// knows the total length.
func (k Kind) LocalCounts() bool {
	t := &Table[k]
	switch send, recv := t.Send.Layout >= Counted, t.Recv.Layout >= Counted; {
	case send && recv:
		return true
	case send:
		return t.Send.Elsewhere == Unused
	case recv:
		return t.Recv.Elsewhere == Unused
	}
	return false
}

// TunedAs returns the collective whose GOMPI_TUNE rules hold for k.
func (k Kind) TunedAs() Kind {
	if t := Table[k].Tuned; t != None {
		return t
	}
	return k
}

// PerRank reports whether Send or Recv has a block for each rank.
func (k Kind) PerRank() bool { return Table[k].Send.PerRank() || Table[k].Recv.PerRank() }

// Splits reports whether a rank sends a separate block to each rank.
func (k Kind) Splits() bool { return Table[k].Send.PerRank() }

// Counted reports whether blocks have different lengths, known to all ranks.
func (k Kind) Counted() bool {
	return (Table[k].Send.Layout >= Counted || Table[k].Recv.Layout >= Counted) && !k.LocalCounts()
}
