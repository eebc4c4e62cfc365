package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// How operands are combined: the part of a loop that knows operators.

// combine stores acc op the vector at m into acc.
func (g *generator) combine(acc Register, m Mem) {
	if g.half {
		in := g.spare[4]
		g.read(in, m)
		g.float(acc, in, VADDPS, VMULPS, VMINPS, VMAXPS, VCMPPS)
		return
	}
	switch g.lane.name {
	case "F32":
		g.float(acc, m, VADDPS, VMULPS, VMINPS, VMAXPS, VCMPPS)
	case "F64":
		g.float(acc, m, VADDPD, VMULPD, VMINPD, VMAXPD, VCMPPD)
	case "I32":
		map[string]func(...Op){"sum": VPADDD, "prod": VPMULLD, "min": VPMINSD, "max": VPMAXSD}[g.op](m, acc, acc)
	case "I64":
		g.int64(acc, m)
	case "U8":
		if g.op == "prod" {
			g.prodBytes(acc, m)
			return
		}
		map[string]func(...Op){"sum": VPADDB, "min": VPMINUB, "max": VPMAXUB}[g.op](m, acc, acc)
	}
}

// float combines floating-point numbers. The instructions for minimum and
// maximum return their second operand if one is a NaN or both are zero, so they
// are asked both ways round: of two zeros the union of the bits is the smaller
// and the intersection the greater, the union of anything with a NaN is a NaN.
func (g *generator) float(acc Register, in Op, add, mul, least, greatest, compare func(...Op)) {
	switch g.op {
	case "sum", "avg":
		add(in, acc, acc)
		return
	case "prod":
		mul(in, acc, acc)
		return
	}
	x, a, b := g.spare[0], g.spare[1], g.spare[2]
	if r, ok := in.(Register); ok {
		x = r
	} else {
		g.move(in, x)
	}
	if g.op == "min" {
		least(x, acc, a)
		least(acc, x, b)
		g.or(a, b, acc)
		return
	}
	greatest(x, acc, a)
	greatest(acc, x, b)
	if g.wide {
		compare(U8(3), x, acc, K1)
		g.and(a, b, acc)
		if g.lane.name == "F64" { // all ones: a NaN
			VPTERNLOGQ(U8(0xff), acc, acc, K1, acc)
		} else {
			VPTERNLOGD(U8(0xff), acc, acc, K1, acc)
		}
		return
	}
	nan := g.spare[3]
	compare(U8(3), x, acc, nan)
	g.and(a, b, acc)
	g.or(nan, acc, acc)
}

func (g *generator) int64(acc Register, m Mem) {
	if g.op == "sum" {
		VPADDQ(m, acc, acc)
		return
	}
	if g.wide {
		map[string]func(...Op){"prod": VPMULLQ, "min": VPMINSQ, "max": VPMAXSQ}[g.op](m, acc, acc)
		return
	}
	x, a, b := g.spare[0], g.spare[1], g.spare[2]
	VMOVDQU(m, x)
	switch g.op {
	case "prod": // low*low + (high*low + low*high)<<32
		VPSRLQ(U8(32), acc, a)
		VPMULUDQ(x, a, a)
		VPSRLQ(U8(32), x, b)
		VPMULUDQ(acc, b, b)
		VPADDQ(a, b, a)
		VPSLLQ(U8(32), a, a)
		VPMULUDQ(x, acc, acc)
		VPADDQ(a, acc, acc)
	case "min":
		VPCMPGTQ(x, acc, a)
		VPBLENDVB(a, x, acc, acc)
	case "max":
		VPCMPGTQ(acc, x, a)
		VPBLENDVB(a, x, acc, acc)
	}
}

// prodBytes multiplies the even and the odd bytes as words and puts the lower
// halves of the products together.
func (g *generator) prodBytes(acc Register, m Mem) {
	x, even := g.spare[0], g.spare[1]
	g.move(m, x)
	VPMULLW(x, acc, even)
	g.and(g.low, even, even)
	VPSRLW(U8(8), x, x)
	VPSRLW(U8(8), acc, acc)
	VPMULLW(x, acc, acc)
	VPSLLW(U8(8), acc, acc)
	g.or(even, acc, acc)
}

// divide makes a sum an average.
func (g *generator) divide(acc Register) {
	switch {
	case g.op != "avg":
	case g.lane.name == "F64":
		VDIVPD(g.count, acc, acc)
	default:
		VDIVPS(g.count, acc, acc)
	}
}
