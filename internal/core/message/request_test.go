package message_test

import (
	"context"
	"errors"
	"testing"

	"gompi/internal/core/message"
	"gompi/internal/mem"
)

// A wait for all requests waits for the last one, too: here the others are complete.
func TestAwaitAllWaitsForTheLastRequest(t *testing.T) {
	e, _ := scripted()
	ch := e.Open(1, nil)
	defer ch.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	handles := []message.Handle{ch.Isend(0, 1, mem.Bytes(make([]byte, 8)), false),
		ch.Irecv(0, 1, mem.Bytes(make([]byte, 8))),
		ch.Irecv(1, 2, mem.Bytes(make([]byte, 8)))}
	if err := e.AwaitAll(t.Context(), 2, func(i int) message.Handle { return handles[i] }); err != nil {
		t.Errorf("complete requests: %v", err)
	}
	if err := e.AwaitAll(ctx, len(handles), func(i int) message.Handle { return handles[i] }); !errors.Is(err,
		context.Canceled) {
		t.Errorf("the last request is not complete: %v, want %v", err, context.Canceled)
	}
}
