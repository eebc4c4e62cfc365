// Command asm writes the vector loops of package mem: kernels_amd64.s, its
// declarations, and the switch that calls a loop by number. It is a module of
// its own, so that mem does not need avo: go generate in ../ runs it.
//
// A loop combines k operands into dst in one pass:
//
//	for each group of vectors from byte from to byte to:
//	    acc = the group in srcs[0]
//	    for each further operand: acc = acc op its group
//	    the group in dst = acc
//
// All operands of a group are read before the group is written, so dst may be any of them. A group
// is four vectors while as many are left, then one. Averages are sums divided by k before writing.
// 16-bit floats are widened to float32 when read and rounded once, when written.
//
// A few loops store non-temporally, for results larger than the caches, to several destinations,
// and with plain stores to one more. Others copy so. Conversions are in convert.go.
package main

import (
	"fmt"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// A level is a set of instructions.
type level struct {
	name string
	wide bool // 512-bit registers, else 256
}

var levels = []level{{"AVX2", false}, {"AVX512", true}}

// A lane is a type as the vector unit sees it.
type lane struct {
	name string
	half bool // 16 bits in memory, float32 in registers
}

var lanes = []lane{{"F32", false}, {"F64", false}, {"F16", true}, {"BF16", true}, {"I32", false}, {"I64", false},
	{"U8", false}}

// nonTemporalLanes are the lanes of the loops that store non-temporally, in whole lines: memory
// bounds their sums and not the processor.
var nonTemporalLanes = []lane{{"F32", false}, {"F64", false}, {"I32", false}, {"I64", false}}

var ops = []string{"sum", "prod", "min", "max", "avg"}

// has reports whether there is a loop of op for t: integers have no averages.
func (t lane) has(op string) bool { return op != "avg" || strings.Contains(t.name, "F") }

func main() {
	ConstraintExpr("amd64")
	var through, nonTemporal []string
	for _, l := range levels {
		for _, t := range lanes {
			for _, op := range ops {
				if !t.has(op) {
					continue
				}
				g := generator{level: l, lane: t, op: op}
				g.loop()
				through = append(through, g.name())
			}
		}
	}
	for _, op := range []string{"sum", "avg"} {
		for _, t := range nonTemporalLanes {
			if t.has(op) {
				g := generator{level: levels[1], lane: t, op: op, nonTemporal: true}
				g.loop()
				nonTemporal = append(nonTemporal, g.name())
			}
		}
	}
	for _, t := range lanes {
		if t.half {
			widen, narrow := generator{level: levels[0], lane: t}, generator{level: levels[0], lane: t, op: "avg"}
			widen.widen()
			narrow.narrow()
		}
	}
	copies("copyNonTemporalAVX2", "copyNonTemporalAVX2 copies n bytes, a multiple of 64 that is not 0, to dst, which is at a multiple of 64.", true, false)
	copies("forkAVX2", "forkAVX2 copies n bytes, a multiple of 64 that is not 0, to dst and to also.", false, true)
	copies("forkNonTemporalAVX2", "forkNonTemporalAVX2 is forkAVX2, but to dst, which is at a multiple of 64, with non-temporal stores.", true, true)
	Generate()
	writeSwitch("../loops_amd64.go", through, nonTemporal)
}

// generator writes one loop.
type generator struct {
	level
	lane
	op          string
	nonTemporal bool       // whole lines are stored non-temporally, except to one destination
	spare       []Register // registers for intermediate values
	ones        Register   // constants of bfloat16 rounding
	bias        Register
	quiet       Register
	low         Register // the lower byte of every word
	count       Register // the number of operands, which averages are divided by
}

func (g *generator) name() string {
	if g.nonTemporal {
		return g.op + g.lane.name + g.level.name + "NonTemporal"
	}
	return g.op + g.lane.name + g.level.name
}

// vec returns the i-th vector register.
func (g *generator) vec(i int) Register {
	if g.wide {
		return []Register{Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15}[i]
	}
	return []Register{Y0, Y1, Y2, Y3, Y4, Y5, Y6, Y7, Y8, Y9, Y10, Y11, Y12, Y13, Y14, Y15}[i]
}

// part returns the lower half or quarter of a vector register, by bytes.
func part(r Register, size int) Register {
	v := r.(VecPhysical)
	switch size {
	case 16:
		return v.AsX()
	case 32:
		return v.AsY()
	}
	return v.AsZ()
}

func (g *generator) width() int {
	if g.wide {
		return 64
	}
	return 32
}

// unit is the bytes of memory in a vector.
func (g *generator) unit() int {
	if g.half {
		return g.width() / 2
	}
	return g.width()
}

const group = 4

func (g *generator) loop() {
	g.begin()
	store := g.stores()
	srcs, k, at, left := GP64(), GP64(), GP64(), GP64()
	Load(Param("srcs"), srcs)
	Load(Param("k"), k)
	Load(Param("to"), left)
	Load(Param("from"), at)
	SUBQ(at, left)
	for i := range 5 {
		g.spare = append(g.spare, g.vec(8+i))
	}
	g.constants()
	if g.op == "avg" {
		g.countOperands(k)
	}
	for _, m := range []int{group, 1} {
		label := fmt.Sprintf("by%d", m)
		Label(label)
		CMPQ(left, U32(m*g.unit()))
		JLT(LabelRef(label + "done"))
		src, j := GP64(), GP64()
		MOVQ(Mem{Base: srcs}, src)
		for i := range m {
			g.read(g.vec(i), Mem{Base: src, Index: at, Scale: 1, Disp: i * g.unit()})
		}
		MOVQ(U32(1), j)
		Label(label + "next")
		CMPQ(j, k)
		JGE(LabelRef(label + "write"))
		MOVQ(Mem{Base: srcs, Index: j, Scale: 8}, src)
		for i := range m {
			g.combine(g.vec(i), Mem{Base: src, Index: at, Scale: 1, Disp: i * g.unit()})
		}
		INCQ(j)
		JMP(LabelRef(label + "next"))
		Label(label + "write")
		for i := range m {
			g.divide(g.vec(i))
		}
		store(label, m, at)
		ADDQ(U32(m*g.unit()), at)
		SUBQ(U32(m*g.unit()), left)
		JMP(LabelRef(label))
		Label(label + "done")
	}
	if g.nonTemporal {
		SFENCE()
	}
	VZEROUPPER()
	RET()
}

// begin writes the head of the loop.
func (g *generator) begin() {
	into, to := "dst *byte", "dst"
	doc := fmt.Sprintf("to-from is a multiple of %d.", g.unit())
	if g.nonTemporal {
		into, to = "dsts **byte, m int, also *byte", "m destinations, and into also if there is one"
		doc += " The destinations are at multiples of 64, and these stores come before all later ones."
	}
	TEXT(g.name(), NOSPLIT, "func("+into+", srcs **byte, k, from, to int)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s combines bytes [from, to) of k operands into %s.", g.name(), to), doc)
}

// stores emits loads of the destinations, and returns a function that emits m vector stores.
func (g *generator) stores() func(label string, m int, at Register) {
	if !g.nonTemporal {
		dst := GP64()
		Load(Param("dst"), dst)
		return func(_ string, m int, at Register) { g.writeAll(dst, m, at, g.write) }
	}
	dsts, count, also, dst, j := GP64(), GP64(), GP64(), GP64(), GP64()
	Load(Param("dsts"), dsts)
	Load(Param("m"), count)
	Load(Param("also"), also)
	return func(label string, m int, at Register) {
		XORQ(j, j)
		Label(label + "store")
		MOVQ(Mem{Base: dsts, Index: j, Scale: 8}, dst)
		g.writeAll(dst, m, at, func(to Mem, r Register) { VMOVNTDQ(r, to) })
		INCQ(j)
		CMPQ(j, count)
		JLT(LabelRef(label + "store"))
		TESTQ(also, also)
		JEQ(LabelRef(label + "stored"))
		g.writeAll(also, m, at, g.write)
		Label(label + "stored")
	}
}

// writeAll writes the first m vectors to dst.
func (g *generator) writeAll(dst Register, m int, at Register, write func(Mem, Register)) {
	for i := range m {
		write(Mem{Base: dst, Index: at, Scale: 1, Disp: i * g.unit()}, g.vec(i))
	}
}

// copies writes a copy, whose stores to dst are non-temporal if nonTemporal, and to one more
// destination if forks.
func copies(name, doc string, nonTemporal, forks bool) {
	params := "dst, src *byte, n int"
	if forks {
		params = "dst, also, src *byte, n int"
	}
	TEXT(name, NOSPLIT, "func("+params+")")
	Pragma("noescape")
	Doc(doc)
	dst, src, left, also := GP64(), GP64(), GP64(), GP64()
	Load(Param("dst"), dst)
	Load(Param("src"), src)
	Load(Param("n"), left)
	if forks {
		Load(Param("also"), also)
	}
	Label("next")
	for i, r := range []Register{Y0, Y1} {
		VMOVDQU(Mem{Base: src, Disp: i * 32}, r)
	}
	for i, r := range []Register{Y0, Y1} {
		if nonTemporal {
			VMOVNTDQ(r, Mem{Base: dst, Disp: i * 32})
		} else {
			VMOVDQU(r, Mem{Base: dst, Disp: i * 32})
		}
	}
	if forks {
		for i, r := range []Register{Y0, Y1} {
			VMOVDQU(r, Mem{Base: also, Disp: i * 32})
		}
		ADDQ(U32(64), also)
	}
	ADDQ(U32(64), src)
	ADDQ(U32(64), dst)
	SUBQ(U32(64), left)
	JNE(LabelRef("next"))
	if nonTemporal {
		SFENCE()
	}
	VZEROUPPER()
	RET()
}

// constants fills the registers that the loop only reads.
func (g *generator) constants() {
	fill := func(i int, value uint32) Register {
		r, x := g.vec(i), part(g.vec(i), 16)
		t := GP32()
		MOVL(U32(value), t)
		VMOVD(t, x)
		VPBROADCASTD(x, r)
		return r
	}
	switch {
	case g.lane.name == "BF16":
		g.ones, g.bias, g.quiet = fill(13, 1), fill(14, 0x7fff), fill(15, 0x40)
	case g.lane.name == "U8" && g.op == "prod":
		g.low = fill(13, 0x00ff00ff)
	}
}

// countOperands fills a register with k as numbers.
func (g *generator) countOperands(k Register) {
	g.count = g.vec(7)
	x := part(g.count, 16)
	if g.lane.name == "F64" {
		VCVTSI2SDQ(k, x, x)
		VBROADCASTSD(x, g.count)
		return
	}
	VCVTSI2SSQ(k, x, x)
	VBROADCASTSS(x, g.count)
}

// read loads the vector at m.
func (g *generator) read(r Register, m Mem) {
	switch g.lane.name {
	case "F16":
		VCVTPH2PS(m, r)
	case "BF16":
		VPMOVZXWD(m, r)
		VPSLLD(U8(16), r, r)
	default:
		g.move(m, r)
	}
}

func (g *generator) move(from, to Op) {
	if g.wide {
		VMOVDQU64(from, to)
		return
	}
	VMOVDQU(from, to)
}

func (g *generator) and(a, b, to Op) {
	if g.wide {
		VPANDD(a, b, to)
		return
	}
	VPAND(a, b, to)
}

func (g *generator) or(a, b, to Op) {
	if g.wide {
		VPORD(a, b, to)
		return
	}
	VPOR(a, b, to)
}

// write stores a vector at m.
func (g *generator) write(m Mem, r Register) {
	switch g.lane.name {
	case "F16":
		VCVTPS2PH(U8(0), r, m) // to nearest even
	case "BF16":
		g.roundBF16(m, r)
	default:
		g.move(r, m)
	}
}

// roundBF16 rounds to nearest even by adding half a step, less one bit if the
// upper half is even; of a NaN it takes the upper half and makes it quiet.
func (g *generator) roundBF16(m Mem, r Register) {
	high, sum := g.spare[0], g.spare[1]
	VPSRLD(U8(16), r, high)
	g.and(g.ones, high, sum)
	VPADDD(g.bias, sum, sum)
	VPADDD(r, sum, sum)
	VPSRLD(U8(16), sum, sum)
	if g.wide {
		VCMPPS(U8(3), r, r, K1) // unordered: a NaN
		VPORD(g.quiet, high, K1, sum)
		VPMOVDW(sum, m)
		return
	}
	nan := g.spare[2]
	VCMPPS(U8(3), r, r, nan)
	VPOR(g.quiet, high, high)
	VPBLENDVB(nan, high, sum, sum)
	VPACKUSDW(sum, sum, sum)
	VPERMQ(U8(0xd8), sum, sum)
	VMOVDQU(part(sum, 16), m)
}
