package randprog

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"gompi/internal/mem"
)

// The largest numbers of a program.
const (
	mostUnits    = 40
	mostComms    = 5
	mostMessages = 12
)

// A generator makes one program.
type generator struct {
	*rand.Rand
	p    *Program
	live []int // communicators, by number
}

// Generate returns the program of ranks ranks that seed stands for.
func Generate(seed uint64, ranks int) *Program {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, uint64(ranks))), p: &Program{Seed: seed, Ranks: ranks}}
	world := make([]int, ranks)
	for i := range world {
		world[i] = i
	}
	g.p.members, g.live = [][]int{world}, []int{0}
	for range 10 + g.IntN(mostUnits-9) {
		g.p.units = append(g.p.units, g.unit())
	}
	return g.p
}

// unit draws the next unit.
func (g *generator) unit() unit {
	switch n := g.IntN(100); {
	case n < 8 && len(g.live) < mostComms:
		return g.makeComm()
	case n < 11 && len(g.live) > 1:
		return g.closeComm()
	case n < 17:
		return g.giveUp()
	case n < 22 && len(g.live) > 1:
		return g.parallel()
	}
	return g.work(g.pick(), true)
}

// pick draws a communicator.
func (g *generator) pick() int { return g.live[g.IntN(len(g.live))] }

func (g *generator) header(on int) header { return header{len(g.p.units), on, g.Uint64()} }

// one returns one of some.
func one[T any](r interface{ IntN(n int) int }, some []T) T { return some[r.IntN(len(some))] }

// chance is true once in n times.
func (g *generator) chance(n int) bool { return g.IntN(n) == 0 }

// work draws a collective or an exchange, which may continue for some units.
func (g *generator) work(on int, goOn bool) unit {
	if g.chance(3) {
		return g.exchange(on, goOn)
	}
	return g.collective(on, goOn)
}

// until draws the unit before which something is waited for.
func (g *generator) until(goOn bool) int {
	if !goOn {
		return len(g.p.units) + 1
	}
	return len(g.p.units) + 1 + g.IntN(6)
}

// bytes draws the length of a vector or a message: mostly short, or about where the
// ways to carry it change.
func (g *generator) bytes() int {
	near := []int{64, 1 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 512 << 10}
	switch n := g.IntN(20); {
	case n < 2:
		return 0
	case n < 10:
		return g.IntN(256)
	case n < 14:
		return g.IntN(20_000)
	case n < 17:
		return max(0, one(g, near[:7])+g.IntN(65)-32)
	case n == 17:
		return max(0, one(g, near)+g.IntN(65)-32)
	}
	return g.IntN(100_000)
}

var types = []mem.Type{mem.I8, mem.I16, mem.I32, mem.I64, mem.U8, mem.U16, mem.U32, mem.U64, mem.F16, mem.BF16,
	mem.F32, mem.F64,
	mem.C64, mem.C128, mem.Bool, mem.I32Loc, mem.I64Loc, mem.F32Loc, mem.F64Loc}

var kinds = slices.Sorted(maps.Keys(calls))

func hasRoot(kind string) bool {
	return slices.Contains([]string{"bcast", "reduce", "reducefunc", "gather", "gatherv", "scatter", "scatterv"}, kind)
}

func reduces(kind string) bool {
	return strings.Contains(kind, "reduce") || strings.Contains(kind, "scan")
}

func (g *generator) collective(on int, goOn bool) unit {
	size := len(g.p.members[on])
	c := &collective{
		header: g.header(on), kind: one(g, kinds), typ: one(g, types), root: g.IntN(size), inPlace: g.chance(3),
		gaps: g.chance(2), alloc: g.chance(3), how: form(g.IntN(3)), times: 1,
	}
	if reduces(c.kind) {
		for c.op = mem.Op(1 + g.IntN(int(mem.MaxLoc))); !c.op.Defined(c.typ); {
			c.op = mem.Op(1 + g.IntN(int(mem.MaxLoc)))
		}
	}
	if strings.HasSuffix(c.kind, "reduce") && g.chance(6) {
		c.kind, c.typ, c.op, c.how = c.kind+"func", mem.U16, mem.Custom, blocking
	}
	c.n = g.bytes() / c.typ.Size()
	if c.kind != "bcast" && c.kind != "reduce" && c.kind != "allreduce" {
		c.n /= size // it is the length of a block, or many ranks' parts make one
	}
	if c.how == persistent && g.chance(2) {
		c.times = 2 + g.IntN(2)
	}
	c.until = g.until(goOn)
	return c
}

func (g *generator) exchange(on int, goOn bool) unit {
	size := len(g.p.members[on])
	x := &exchange{header: g.header(on), fenced: g.chance(4), until: g.until(goOn)}
	// The properties of all messages to a rank, and of all between two.
	type pair struct {
		when   phase
		anyTag bool
	}
	pairs := map[[2]int]pair{}
	anySource, whenAny := make([]bool, size), make([]phase, size)
	for r := range size {
		anySource[r], whenAny[r] = g.chance(4), phase(g.IntN(int(phases)))
	}
	for range 1 + g.IntN(mostMessages) {
		from, to := g.IntN(size), g.IntN(size)
		if _, ok := pairs[[2]int{from, to}]; !ok {
			pairs[[2]int{from, to}] = pair{one(g, []phase{early, inTurn, inTurn, inTurn, late}), g.chance(4)}
		}
		of := pairs[[2]int{from, to}]
		m := message{from: from, to: to, tag: g.IntN(3), typ: one(g, types), times: 1, when: of.when, anyTag: of.anyTag,
			send: sendMode(g.IntN(int(sendModes))), recv: recvMode(g.IntN(int(recvModes)))}
		m.n = g.bytes() / m.typ.Size()
		m.room = m.n
		if anySource[to] {
			g.fromAny(x, &m, whenAny[to])
		} else {
			g.fit(&m)
		}
		switch {
		case m.when == early:
			m.recv = irecv
		case m.when == late, m.anySource, from == to:
			m.send = isend + m.send%2
		}
		if m.send >= sendPersistent && m.recv == recvPersistent && !m.anySource && m.room == m.n && !m.wrongType {
			m.times = 1 + g.IntN(3)
		}
		x.messages = append(x.messages, m)
	}
	for to := range size {
		if g.chance(2) {
			g.mixSources(x, to)
		}
	}
	return x
}

// mixSources makes some receives of a rank to which only one sends receives from any
// source. They get messages in their order all the same. Tags are the unit's own.
func (g *generator) mixSources(x *exchange, to int) {
	only := -1
	for _, m := range x.messages {
		if m.to == to && (m.anySource || only >= 0 && m.from != only) {
			return
		}
		if m.to == to {
			only = m.from
		}
	}
	for i := range x.messages {
		if m := &x.messages[i]; m.to == to {
			m.tag += 1000 + 3*x.id
			m.onlySource = g.chance(2) && (x.fenced || !m.anyTag)
		}
	}
}

// fromAny makes m one that a receive from any source gets: its receiver gets all that it gets in
// this unit so. It waits for none at once, or for each: then its next receive may get a later
// message, and no sender may wait for it to get to an earlier one. Tags are the unit's own, and
// only where a barrier follows may the receive be of any tag.
func (g *generator) fromAny(x *exchange, m *message, when phase) {
	m.anySource, m.when, m.anyTag = true, when, x.fenced
	m.typ, m.room = mem.U8, 600_000
	m.n = g.bytes()
	m.tag = 1000 + 3*x.id
	if x.fenced {
		m.tag += g.IntN(3)
	}
	m.recv = one(g, []recvMode{recv, recvPersistent, probe, iprobe, mprobe, improbe})
}

// fit draws how m fits into its receive's buffer.
func (g *generator) fit(m *message) {
	switch g.IntN(16) {
	case 0:
		m.room += g.IntN(1000)
	case 1:
		m.room /= 2
	case 2:
		m.wrongType = m.n > 0 && m.typ != mem.U8 // bytes fit every type
	}
}

func (g *generator) makeComm() unit {
	on := g.pick()
	size := len(g.p.members[on])
	m := &makeComm{header: g.header(on), how: one(g, []string{"dup", "split", "create"}), makes: len(g.p.members)}
	for range size {
		m.colors, m.keys = append(m.colors, g.IntN(3)-1), append(m.keys, g.IntN(5)-2)
	}
	m.colors[g.IntN(size)] = 0 // one rank at least
	m.group, m.rest = g.Perm(size)[:1+g.IntN(size)], g.IntN(2) == 0
	var world []int
	for _, r := range m.of(size) {
		world = append(world, g.p.members[on][r])
	}
	g.p.members = append(g.p.members, world)
	g.live = append(g.live, m.makes)
	return m
}

func (g *generator) closeComm() unit {
	k := 1 + g.IntN(len(g.live)-1)
	on := g.live[k]
	g.live = slices.Delete(g.live, k, k+1)
	c := &closeComm{g.header(on)}
	for _, u := range g.p.units { // operations that continue there end before
		switch u := u.(type) {
		case *collective:
			if u.on == on {
				u.until = min(u.until, c.id)
			}
		case *exchange:
			if u.on == on {
				u.until = min(u.until, c.id)
			}
		}
	}
	return c
}

func (g *generator) giveUp() unit {
	on := g.pick()
	size := len(g.p.members[on])
	u := &giveUp{header: g.header(on), what: one(g, waysToGiveUp), who: g.IntN(size), n: 1 + g.bytes()}
	if size == 1 {
		u.what = one(g, waysToGiveUp[:4]) // ways without a peer
	} else {
		u.peer = (u.who + 1 + g.IntN(size-1)) % size
	}
	return u
}

func (g *generator) parallel() unit {
	u := &parallel{header: g.header(0)}
	chosen := slices.Clone(g.live)
	g.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
	for _, on := range chosen[:2+g.IntN(len(chosen)-1)] {
		u.units = append(u.units, g.work(on, false))
	}
	return u
}
