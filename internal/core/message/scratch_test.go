package message_test

import (
	"context"
	"errors"
	"testing"

	"gompi/internal/calls"
	"gompi/internal/core/call"
	"gompi/internal/core/message"
	"gompi/internal/core/round"
	"gompi/internal/mem"
)

func TestScratchOfAPartServesTheNext(t *testing.T) {
	run(t, 1, func(ctx context.Context, e *message.Engine, ch *message.Channel) error {
		rd := round.Of(ch)
		if err := rd.Begin(ctx, &call.Fingerprint{Kind: calls.Barrier}, 0, false); err != nil {
			return err
		}
		like := mem.Bytes(make([]byte, 1))
		kept := rd.Scratch(like, 1<<20)
		lent := rd.Lent()
		part := rd.Scratch(like, 1<<20)
		rd.TakeBack(lent)
		if next := rd.Scratch(like, 1<<20); next.Addr() != part.Addr() || next.Addr() == kept.Addr() {
			return errors.New("the next part got other memory, or what is still in use")
		}
		return rd.End(nil)
	})
}
