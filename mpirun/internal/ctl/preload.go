package ctl

import (
	"math"

	"gompi/internal/boot/wire"
)

// MaxPiece is the most bytes of a Piece.
const MaxPiece = 1 << 20

// Want asks for a Piece of a program or file that Launch lists for preloading and that the host
// lacks.
type Want struct {
	Item   int // index into Launch.Programs, Launch.Files and Launch.MPI, one after another
	Offset int64
}

func (m *Want) fields(c *wire.Codec) {
	wire.Int(c, &m.Item, 0, maxList)
	wire.Int(c, &m.Offset, 0, math.MaxInt64)
}

// Piece is the next part of a program or file. An empty Piece means that there is no more,
// although the agent asked.
type Piece struct{ Data []byte }

func (m *Piece) fields(c *wire.Codec) { c.Bytes(&m.Data, MaxPiece) }
