package ctl

import (
	"math"

	"gompi/internal/boot/wire"
)

// MaxPiece is how much of a program or file is sent at once.
const MaxPiece = 1 << 20

// Want asks for a Piece of a program or file that Launch has said is to be preloaded
// and that the host does not have.
type Want struct {
	Item   int // a position in Launch.Programs, or, beyond those, in Launch.Files
	Offset int64
}

func (*Want) kind() byte               { return kindWant }
func (m *Want) append(b []byte) []byte { return wire.AppendInt(wire.AppendInt(b, m.Item), m.Offset) }
func (m *Want) parse(d *wire.Decoder) {
	m.Item, m.Offset = int(d.Int(0, maxList)), d.Int(0, math.MaxInt64)
}

// Piece is a part of a program or file, the next after those that have been sent. An
// empty one means that there is no more, although the agent asked.
type Piece struct{ Data []byte }

func (*Piece) kind() byte               { return kindPiece }
func (m *Piece) append(b []byte) []byte { return wire.AppendBytes(b, m.Data) }
func (m *Piece) parse(d *wire.Decoder)  { m.Data = d.Bytes(MaxPiece) }
