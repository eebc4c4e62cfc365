package memory

import (
	"gompi/internal/core/message"
	"gompi/internal/core/peers"
	"gompi/internal/mem"
	"gompi/transport"
)

// A Remote is memory of another rank that a network device accesses without the rank's processor.
// Places are that rank's addresses. A result of 0 or false means that too many operations are under
// way and nothing was done: the caller polls and tries again.
type Remote struct {
	ch  *message.Channel
	p   *peers.Peer
	key []byte
	m   transport.Remote // nil until first reached
}

// NewRemote returns memory of which a member of ch has sent the key.
func NewRemote(ch *message.Channel, member int, key []byte) *Remote {
	ch.Engine.Progress.Lock()
	defer ch.Engine.Progress.Unlock()
	return &Remote{ch: ch, p: ch.Peer(member), key: key}
}

// Reached reports whether r can be accessed: a device must support it, and a first message must
// have connected the two ranks.
func (r *Remote) Reached() bool {
	r.ch.Engine.Progress.Lock()
	defer r.ch.Engine.Progress.Unlock()
	if r.m == nil {
		r.m = r.p.Remote(r.key)
	}
	return r.m != nil
}

// Write stores bytes of src at an address. The result is the number of bytes taken, whose memory
// the caller may reuse at once. r is Reached, here and below.
func (r *Remote) Write(at uintptr, src []byte) (n int, err error) {
	r.ch.Engine.Progress.Lock()
	defer r.ch.Engine.ExitPolling()
	if err := r.ch.Usable(r.p); err != nil {
		return 0, err
	}
	return r.p.Write(r.m, at, src), nil
}

// Read stores n bytes at an address in dst, complete when the Handle is done.
func (r *Remote) Read(at uintptr, dst []byte) (n int, h message.Handle, err error) {
	h, err = r.ch.StartOnDevice(r.p, mem.Bytes(dst), func(token uint64) bool {
		n = r.p.Read(r.m, at, dst, token)
		return n > 0
	})
	return n, h, err
}

// Flush returns a Handle that is done when all earlier writes are stored at the member.
func (r *Remote) Flush() (h message.Handle, begun bool, err error) {
	h, err = r.ch.StartOnDevice(r.p, mem.Buffer{}, func(token uint64) bool {
		begun = r.m.Flush(token)
		return begun
	})
	return h, begun, err
}

// Close frees r's resources. Nothing is under way.
func (r *Remote) Close() {
	r.ch.Engine.Progress.Lock()
	defer r.ch.Engine.Progress.Unlock()
	if r.m != nil {
		r.m.Close()
	}
}
