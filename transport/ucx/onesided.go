package ucx

import (
	"slices"
	"strings"

	"gompi/internal/fifo"
	"gompi/internal/mem"
	"gompi/internal/world"
	"gompi/transport"
	"gompi/transport/ucx/internal/ucp"
)

// This file implements transport.OneSided, by UCX's puts and gets. If a connection has no device
// for them, UCX lets the peer's worker do them in its progress, which is no better than messages:
// then there is no Remote.
//
// Writes leave from memory of package ucp, and reads arrive there, so that no buffer is lent: after
// Forget, or when the peer is lost, a late answer is dropped. UCX's flush ends when the peer's
// device has acknowledged all writes. By then they are in the peer's memory for any rank that
// learns of the flush.

// An access is a read or a flush under way. Reads of different sizes may complete out of order.
type access struct {
	number uint64
	token  uint64 // 0: done, or forgotten
	dst    []byte
}

// accesses are the accesses to one peer.
type accesses struct{ fifo.Queue[access] }

// A remote is a transport.Remote.
type remote struct {
	t *Transport
	p *peer
	m ucp.Remote
}

// Key implements transport.OneSided.
func (t *Transport) Key(b mem.Buffer) []byte {
	id, _ := t.find(b.HostSlice())
	if id < 0 || t.closing {
		return nil
	}
	return t.ucp.Key(id)
}

// Remote implements transport.OneSided.
func (t *Transport) Remote(rank world.Rank, key []byte) transport.Remote {
	p := t.peers[rank]
	if p == nil || !p.open || p.lost || p.served || t.closing {
		return nil
	}
	if !t.offloads(p) {
		p.served = true
		return nil
	}
	m := t.ucp.Remote(int(rank), key)
	if m == nil {
		p.served = true
		return nil
	}
	return &remote{t, p, m}
}

// offloads reports whether a device does puts and gets to p: among UCX's transports for InfiniBand
// and RoCE, the ones with reliable connections. Tests use others, too.
func (t *Transport) offloads(p *peer) bool {
	return t.cfg.Transports != "" || slices.ContainsFunc(t.ucp.Lanes(int(p.rank)), func(name string) bool {
		return strings.HasPrefix(name, "rc_") || strings.HasPrefix(name, "dc_")
	})
}

// Write implements transport.Remote.
func (r *remote) Write(at uintptr, src []byte) int {
	n := min(len(src), ucp.ChunkSize)
	if r.p.lost || r.t.closing || !r.t.ucp.Write(r.m, at, src[:n]) {
		return 0
	}
	return n
}

// Read implements transport.Remote.
func (r *remote) Read(at uintptr, dst []byte, token uint64) int {
	n := min(len(dst), ucp.ChunkSize)
	if r.p.lost || r.t.closing || !r.t.ucp.Read(r.m, at, n, r.t.accessed+1) {
		return 0
	}
	r.t.accessed++
	r.p.accesses.Push(access{r.t.accessed, token, dst[:n]})
	return n
}

// Flush implements transport.Remote.
func (r *remote) Flush(token uint64) bool {
	if r.p.lost || r.t.closing {
		return false
	}
	r.t.accessed++
	r.p.accesses.Push(access{number: r.t.accessed, token: token})
	r.t.ucp.Settle(int(r.p.rank), r.t.accessed)
	return true
}

// Close implements transport.Remote.
func (r *remote) Close() {
	if !r.t.closed { // else package ucp has closed the Remote
		r.t.ucp.Forget(r.m)
	}
}

// onDone ends a message's access.
func (t *Transport) onDone(p *peer, m *ucp.Message) {
	items := p.accesses.Items()
	i := slices.IndexFunc(items, func(x access) bool { return x.number == m.Number })
	token := items[i].token
	if token != 0 {
		copy(items[i].dst, m.Data)
	}
	items[i] = access{}
	for !p.accesses.Empty() && p.accesses.Front().number == 0 {
		p.accesses.Pop()
	}
	if token != 0 {
		t.sink.Sent(token, nil)
	}
}

// forgetAccess drops the result of the access with a token.
func (p *peer) forgetAccess(token uint64) {
	items := p.accesses.Items()
	if i := slices.IndexFunc(items, func(x access) bool { return x.token == token }); i >= 0 {
		items[i].token, items[i].dst = 0, nil
	}
}

// endAccesses ends all accesses to p.
func (t *Transport) endAccesses(p *peer, err error) {
	for !p.accesses.Empty() {
		if x := p.accesses.Pop(); x.token != 0 {
			t.sink.Sent(x.token, err)
		}
	}
}
