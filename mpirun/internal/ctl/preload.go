package ctl

import (
	"math"

	"gompi/internal/boot/wire"
)

// MaxPiece is how much of a program or file is sent at once.
const MaxPiece = 1 << 20

// Want asks for a Piece of a program or file that Launch lists for preloading and that the host
// does not have.
type Want struct {
	Item   int // a position in Launch.Programs or, beyond those, in Launch.Files, and then in Launch.MPI
	Offset int64
}

func (m *Want) fields(c *wire.Codec) {
	wire.Int(c, &m.Item, 0, maxList)
	wire.Int(c, &m.Offset, 0, math.MaxInt64)
}

// Piece is a part of a program or file, the next after those that have been sent. An
// empty one means that there is no more, although the agent asked.
type Piece struct{ Data []byte }

func (m *Piece) fields(c *wire.Codec) { c.Bytes(&m.Data, MaxPiece) }
