package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// Conversions of 16-bit floats do a group of vectors at a time, and nothing less.

// widen writes the conversion from 16-bit floats.
func (g *generator) widen() {
	g.conversion("widen", "dst, src *byte, n int", "stores the values of n elements as float32.",
		func(dst, src Mem, i int) {
			g.read(g.vec(i), src.Offset(i*g.unit()))
			g.move(g.vec(i), dst.Offset(i*g.width()))
		}, 1, 2)
}

// narrow writes the conversion to 16-bit floats.
func (g *generator) narrow() {
	g.conversion("narrow", "dst, src *byte, n int, by float32", "divides n float32 and rounds the quotients.",
		func(dst, src Mem, i int) {
			g.move(src.Offset(i*g.width()), g.vec(i))
			g.divide(g.vec(i))
			g.write(dst.Offset(i*g.unit()), g.vec(i))
		}, 2, 1)
}

// conversion writes a loop that converts the i-th vector of a group with convert, and goes on by
// as many halves of a vector in src and in dst.
func (g *generator) conversion(verb, params, does string, convert func(dst, src Mem, i int), srcHalves, dstHalves int) {
	name := verb + g.lane.name + g.level.name
	TEXT(name, NOSPLIT, "func("+params+")")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s %s n is a multiple of %d that is not 0.", name, does, group*g.unit()/2))
	dst, src, left := GP64(), GP64(), GP64()
	Load(Param("dst"), dst)
	Load(Param("src"), src)
	Load(Param("n"), left)
	for i := range 5 {
		g.spare = append(g.spare, g.vec(8+i))
	}
	g.constants()
	if g.op == "avg" {
		g.count = g.vec(7)
		by, err := Param("by").Resolve()
		if err != nil {
			panic(err)
		}
		VBROADCASTSS(by.Addr, g.count)
	}
	Label("next")
	for i := range group {
		convert(Mem{Base: dst}, Mem{Base: src}, i)
	}
	ADDQ(U32(srcHalves*group*g.unit()), src)
	ADDQ(U32(dstHalves*group*g.unit()), dst)
	SUBQ(U32(group*g.unit()/2), left)
	JNE(LabelRef("next"))
	VZEROUPPER()
	RET()
}
