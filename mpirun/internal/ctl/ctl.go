// Package ctl is the language of launcher and agents: one struct per message
// and their binary form. It does no input or output beyond reading messages
// from a stream.
//
// An agent writes Magic and then frames; whatever a login shell prints before
// it is skipped, and kept for the error message if Magic never comes. The
// launcher writes frames alone. Frames are those of internal/boot/wire. Lists
// of ranks and descriptors are bounded, and decoding takes memory only for
// bytes that have arrived.
package ctl

import (
	"bytes"
	"fmt"
	"io"

	"gompi/internal/boot/wire"
)

// Magic opens an agent's output. It names the version of this language.
const Magic = "\x00gompi agent 1\n"

// Version is gompirun's own. Launcher and agents of one job have the same.
const Version = "0.1.0"

// Bounds of what is sent, in bytes or entries.
const (
	MaxText   = 64 << 10 // a message for people
	MaxChunk  = 64 << 10 // what is read of a rank's output, or sent of its input, at once
	MaxOutput = 1 << 20  // a piece of a rank's output: a line may be long
	maxFrame  = 1 << 30
	maxString = 2 << 20 // an argument or a variable; Linux allows 128 KiB
	maxList   = 1 << 20
	maxCPU    = 1 << 16
	maxBanner = 64 << 10
)

// Silence is how many beats of their heart launcher and agent bear without a word of the
// other.
const Silence = 3

// A Message is a pointer to one of the structs of this package.
type Message interface {
	kind() byte
	append(b []byte) []byte
	parse(d *wire.Decoder)
}

// The kinds. The order is part of the language.
const (
	kindHello = iota + 1
	kindStarted
	kindFailed
	kindOutput
	kindConsumed
	kindCards
	kindRevoke
	kindAbort
	kindExited
	kindDoing
	kindDrained
	kindNote
	kindLaunch
	kindInput
	kindCredit
	kindSignal
	kindAsk
	kindGathered
	kindDied
	kindAbsent
	kindRevoked
	kindTerminate
	kindStalled
	kindPing
	kindPong
	kindStacks
	kindFence
	kindFenced
	kindExamine
	kindFindings
	kindReach
	kindReached
	kindWant
	kindPiece
	kindFindGPUs
	kindGPUs
	kindNudge
)

// blank returns an empty message of a kind, nil for an unknown one.
func blank(kind byte) Message {
	switch kind {
	case kindHello:
		return new(Hello)
	case kindStarted:
		return new(Started)
	case kindFailed:
		return new(Failed)
	case kindOutput:
		return new(Output)
	case kindConsumed:
		return new(Consumed)
	case kindCards:
		return new(Cards)
	case kindRevoke:
		return new(Revoke)
	case kindAbort:
		return new(Abort)
	case kindExited:
		return new(Exited)
	case kindDoing:
		return new(Doing)
	case kindDrained:
		return new(Drained)
	case kindNote:
		return new(Note)
	case kindLaunch:
		return new(Launch)
	case kindInput:
		return new(Input)
	case kindCredit:
		return new(Credit)
	case kindSignal:
		return new(Signal)
	case kindAsk:
		return new(Ask)
	case kindGathered:
		return new(Gathered)
	case kindDied:
		return new(Died)
	case kindAbsent:
		return new(Absent)
	case kindRevoked:
		return new(Revoked)
	case kindTerminate:
		return new(Terminate)
	case kindExamine:
		return new(Examine)
	case kindFindings:
		return new(Findings)
	case kindReach:
		return new(Reach)
	case kindReached:
		return new(Reached)
	case kindWant:
		return new(Want)
	case kindPiece:
		return new(Piece)
	case kindFindGPUs:
		return new(FindGPUs)
	case kindGPUs:
		return new(GPUs)
	case kindNudge:
		return new(Nudge)
	case kindStalled:
		return new(Stalled)
	case kindPing:
		return new(Ping)
	case kindPong:
		return new(Pong)
	case kindStacks:
		return new(Stacks)
	case kindFence:
		return new(Fence)
	case kindFenced:
		return new(Fenced)
	}
	return nil
}

// Append appends m's frame.
func Append(b []byte, m Message) []byte { return wire.AppendFrame(b, m.kind(), m.append) }

// Parse returns the message of a frame. Byte slices in it alias body.
func Parse(kind byte, body []byte) (Message, error) {
	m := blank(kind)
	if m == nil {
		return nil, fmt.Errorf("%w: unknown kind %d", wire.ErrFrame, kind)
	}
	d := wire.NewDecoder(body)
	m.parse(d)
	if err := d.Err(); err != nil {
		return nil, fmt.Errorf("%w: %T: %w", wire.ErrFrame, m, err)
	}
	return m, nil
}

// Frames returns an empty splitter with the bound of this language.
func Frames() wire.Frames { return wire.Frames{Limit: maxFrame} }

// A Reader reads messages from an agent's output. It is used by one goroutine.
type Reader struct {
	// Waiting, if not nil, is called when only a part of a message has come.
	Waiting func()

	r      io.Reader
	frames wire.Frames
	banner []byte // what came before Magic
	open   bool   // Magic has come
}

// NewReader returns a Reader of r.
func NewReader(r io.Reader) *Reader { return &Reader{r: r, frames: Frames()} }

// Next returns the next message, blocking until there is one. The message is
// the caller's to keep. At the end of the stream it returns io.EOF, or
// io.ErrUnexpectedEOF in the middle of a frame.
func (r *Reader) Next() (Message, error) {
	if !r.open {
		if err := r.awaitMagic(); err != nil {
			return nil, err
		}
		r.open = true
	}
	for {
		kind, body, ok, err := r.frames.Next()
		if err != nil {
			return nil, err
		}
		if ok {
			return Parse(kind, bytes.Clone(body))
		}
		if r.Waiting != nil && r.frames.Partial() {
			r.Waiting()
		}
		n, err := r.r.Read(r.frames.Room(false))
		r.frames.Filled(n)
		if n == 0 && err != nil {
			if err == io.EOF && r.frames.Partial() {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
}

// awaitMagic skips what comes before Magic. It reads byte by byte, which only a
// login banner makes long.
func (r *Reader) awaitMagic() error {
	one := make([]byte, 1)
	for !bytes.HasSuffix(r.banner, []byte(Magic)) {
		if len(r.banner) >= maxBanner {
			return fmt.Errorf("%d bytes and no agent: %.80q", len(r.banner), r.banner)
		}
		if _, err := io.ReadFull(r.r, one); err != nil {
			if len(r.banner) > 0 {
				return fmt.Errorf("%w before the agent started, after %.200q", err, r.banner)
			}
			return err
		}
		r.banner = append(r.banner, one[0])
	}
	r.banner = bytes.TrimSuffix(r.banner, []byte(Magic))
	return nil
}

// Banner returns what the stream held before Magic.
func (r *Reader) Banner() []byte { return r.banner }
