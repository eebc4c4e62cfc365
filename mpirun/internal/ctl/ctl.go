// Package ctl is the language of launcher and agents: one struct per message and the binary form.
// Its only input or output is reading messages from a stream.
//
// An agent writes Magic and then frames; the launcher writes frames alone. Frames are defined by
// internal/boot/wire, and so are the messages of ranks and for ranks: FromRank, ToRanks, Gathered
// and Brief hold them as frames. Lists of ranks and descriptors are bounded, and decoding takes
// memory only for bytes that have arrived.
package ctl

import (
	"bytes"
	"fmt"
	"io"

	"gompi/internal/boot/wire"
	"gompi/internal/version"
)

// Magic opens an agent's output. Its number, one digit, is raised when a message changes.
const Magic = "\x00gompi agent E\n"

// Version is gompirun's own. Launcher and agents of one job have the same version.
const Version = version.Number

// Bounds of messages, in bytes or entries.
const (
	MaxText   = 64 << 10 // a message for people
	MaxChunk  = 64 << 10 // one read of a rank's output, or one write of its input
	MaxOutput = 1 << 20  // a piece of a rank's output: a line may be long
	maxFrame  = 1 << 30
	maxString = 2 << 20 // an argument or a variable; Linux allows 128 KiB
	maxList   = 1 << 20
	maxCPU    = 1 << 16
)

// Silence is the number of heartbeat periods without a message until an agent or launcher is lost.
const Silence = 3

// A Message is a pointer to one of the structs of this package.
type Message interface{ fields(*wire.Codec) }

var protocol = wire.NewProtocol[Message](Message.fields,
	&Hello{}, &Started{}, &Failed{}, &Output{}, &Consumed{}, &Cards{}, &FromRank{}, &Alone{},
	&Exited{}, &Doing{}, &Drained{}, &Note{}, &Launch{}, &Input{}, &Credit{}, &Signal{}, &Ask{},
	&Gathered{}, &ToRanks{}, &Absent{}, &Terminate{}, &Stalled{}, &Ping{}, &Pong{}, &Stacks{},
	&Fence{}, &Fenced{}, &Examine{}, &Findings{}, &Reach{}, &Reached{}, &Want{}, &Piece{},
	&FindGPUs{}, &GPUs{}, &Nudge{}, &Replace{}, &Brief{}, &NoMore{}, &Figures{}, &Events{}, &Layout{},
)

// Append appends m's frame.
func Append(b []byte, m Message) []byte { return protocol.Append(b, m) }

// Next takes the next message from f; ok is false if more bytes must be read first. Byte slices
// in the message are valid until f.ReadBuffer is called.
func Next(f *wire.Frames) (m Message, ok bool, err error) { return protocol.Next(f) }

// Frames returns an empty splitter with the bound of this language.
func Frames() wire.Frames { return wire.Frames{Limit: maxFrame} }

// A Reader reads messages from an agent's output. A single goroutine uses a Reader.
type Reader struct {
	// Waiting, if not nil, is called while a message is incomplete.
	Waiting func()

	r      io.Reader
	frames wire.Frames
	open   bool // Magic has been read
}

// NewReader returns a Reader of r.
func NewReader(r io.Reader) *Reader { return &Reader{r: r, frames: Frames()} }

// Next returns the next message, blocking until there is one. The caller may keep the message. At
// the end of the stream the error is io.EOF, or io.ErrUnexpectedEOF in the middle of a frame.
func (r *Reader) Next() (Message, error) {
	if !r.open {
		magic := make([]byte, len(Magic))
		if _, err := io.ReadFull(r.r, magic); err != nil {
			return nil, err
		}
		if r.open = string(magic) == Magic; !r.open {
			return nil, fmt.Errorf("it begins with %q: want %q, as agents of this version do", magic, Magic)
		}
	}
	for {
		kind, body, ok, err := r.frames.Next()
		if err != nil {
			return nil, err
		}
		if ok {
			return protocol.Parse(kind, bytes.Clone(body))
		}
		if r.Waiting != nil && r.frames.Partial() {
			r.Waiting()
		}
		n, err := r.r.Read(r.frames.ReadBuffer(false))
		r.frames.Filled(n)
		if n == 0 && err != nil {
			if err == io.EOF && r.frames.Partial() {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
}
