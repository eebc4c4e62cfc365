package message

import (
	"gompi/internal/core/payload"
	"gompi/internal/core/peers"
	"gompi/internal/mem"
	"gompi/transport"
)

// A Remote is memory of a member of a Channel that a network device accesses without the member's
// processor. Its methods take the lock. A result of 0 or false means that too many operations are
// under way and nothing was done: the caller polls and tries again.
type Remote struct {
	ch  *Channel
	p   *peers.Peer
	key []byte
	m   transport.Remote // nil until first reached
}

// Remote returns memory of which a member has sent the key.
func (ch *Channel) Remote(member int, key []byte) *Remote {
	ch.e.progress.Lock()
	defer ch.e.progress.Unlock()
	return &Remote{ch: ch, p: ch.e.peers.Peer(ch.World(member)), key: key}
}

// Reached reports whether r can be accessed: a device must support it, and a first message must
// have connected the two ranks.
func (r *Remote) Reached() bool {
	r.ch.e.progress.Lock()
	defer r.ch.e.progress.Unlock()
	if r.m == nil {
		r.m = r.p.Remote(r.key)
	}
	return r.m != nil
}

// Write stores bytes of src at an address. The result is the number of bytes taken, whose memory
// the caller may reuse at once. r is Reached, here and below.
func (r *Remote) Write(at uintptr, src []byte) (n int, err error) {
	e := r.ch.e
	e.progress.Lock()
	defer e.exitPolling()
	if err := r.ch.Usable(r.p); err != nil {
		return 0, err
	}
	return r.p.Write(r.m, at, src), nil
}

// Read stores n bytes at an address in dst, complete when the Handle is done.
func (r *Remote) Read(at uintptr, dst []byte) (n int, h Handle, err error) {
	h, err = r.begin(mem.Bytes(dst), func(token uint64) bool {
		n = r.p.Read(r.m, at, dst, token)
		return n > 0
	})
	return n, h, err
}

// Flush returns a Handle that is done when all earlier writes are stored at the member.
func (r *Remote) Flush() (h Handle, begun bool, err error) {
	h, err = r.begin(mem.Buffer{}, func(token uint64) bool {
		begun = r.m.Flush(token)
		return begun
	})
	return h, begun, err
}

// begin opens a Request for the operation of start, if start returns true.
func (r *Remote) begin(b mem.Buffer, start func(token uint64) bool) (Handle, error) {
	e := r.ch.e
	e.progress.Lock()
	defer e.progress.Exit()
	if err := r.ch.Usable(r.p); err != nil {
		return Handle{}, err
	}
	q := e.open()
	q.begin(r.ch, payload.Leaving, b, r.p.Rank, 0)
	q.Await(r.p)
	h := q.handle()
	if !start(e.stamp(q)) {
		e.finish(q, nil)
		e.take(h)
		return Handle{}, nil
	}
	e.outstanding(q)
	return h, nil
}

// Close frees r's resources. Nothing is under way.
func (r *Remote) Close() {
	r.ch.e.progress.Lock()
	defer r.ch.e.progress.Unlock()
	if r.m != nil {
		r.m.Close()
	}
}
