// Package mem describes typed memory: element types, reduction operators, runs of elements (Buffer)
// and the kinds of memory they live in (Space), with the host's reduction kernels. Every layer of
// gompi shares it: a face turns a slice into a Buffer, algorithms and transports handle Buffers
// alone, and a device's memory is used in the same way by implementing Space.
package mem

import (
	"fmt"
	"reflect"
	"unsafe"
)

// A Type is the element type of a Buffer. It travels in message headers, so the values are part of
// the wire format.
type Type uint8

// The element types. Go's int, uint and uintptr map to the fixed type of their size. The Loc types
// are pairs for MinLoc and MaxLoc; see Loc.
//
//c:const GOMPI_TYPE_
const (
	NoType Type = iota
	I8
	I16
	I32
	I64
	U8
	U16
	U32
	U64
	F16
	BF16
	F32
	F64
	C64
	C128
	Bool
	I32Loc
	I64Loc
	F32Loc
	F64Loc
	Opaque // of any size, which only a Buffer knows: see HostElements
	numTypes
)

var typeInfo = [numTypes]struct {
	name string
	size int
}{
	NoType: {"none", 0},
	I8:     {"int8", 1}, I16: {"int16", 2}, I32: {"int32", 4}, I64: {"int64", 8},
	U8: {"uint8", 1}, U16: {"uint16", 2}, U32: {"uint32", 4}, U64: {"uint64", 8},
	F16: {"float16", 2}, BF16: {"bfloat16", 2}, F32: {"float32", 4}, F64: {"float64", 8},
	C64: {"complex64", 8}, C128: {"complex128", 16},
	Bool:   {"bool", 1},
	I32Loc: {"int32loc", 16}, I64Loc: {"int64loc", 16}, F32Loc: {"float32loc", 16}, F64Loc: {"float64loc", 16},
	Opaque: {"opaque", 0},
}

// Size returns the bytes of one element, 0 for NoType, Opaque and unknown values.
func (t Type) Size() int {
	if t >= numTypes {
		return 0
	}
	return typeInfo[t].size
}

// IsInteger reports whether t is an integer type, with or without a sign.
func (t Type) IsInteger() bool { return t >= I8 && t <= U64 }

// Valid reports whether t is one of the element types that have a size.
func (t Type) Valid() bool { return t > NoType && t < Opaque }

func (t Type) String() string {
	if t >= numTypes {
		return fmt.Sprintf("type(%d)", uint8(t))
	}
	return typeInfo[t].name
}

// ParseType returns the Type that String names.
func ParseType(s string) (Type, error) {
	for t := NoType + 1; t.Valid(); t++ {
		if typeInfo[t].name == s {
			return t, nil
		}
	}
	return NoType, fmt.Errorf("unknown element type %q: want int8..int64, uint8..uint64, float16, bfloat16, float32, float64, complex64, complex128 or bool", s)
}

// Number is the constraint of element types that have arithmetic.
type Number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 |
		~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr |
		~float32 | ~float64 | ~complex64 | ~complex128 |
		Float16 | BFloat16
}

// Scalar is the constraint of every element type that can be sent.
type Scalar interface {
	Number | ~bool | Loc[int32] | Loc[int64] | Loc[float32] | Loc[float64]
}

// Float16 holds an IEEE 754 binary16 number. It is a struct so that no ~uint16 constraint can
// mistake it for an integer.
type Float16 struct{ Bits uint16 }

// BFloat16 holds a bfloat16 number, the upper half of a float32.
type BFloat16 struct{ Bits uint16 }

// A Loc pairs a value with an index, mostly its rank or position, for MinLoc and MaxLoc.
type Loc[T int32 | int64 | float32 | float64] struct {
	Value T
	Index int64
}

// TypeOf returns the Type of T.
func TypeOf[T Scalar]() Type {
	var zero T
	switch any(zero).(type) { // the usual types, without reflect: 2 ns, with reflect 8
	case float32:
		return F32
	case float64:
		return F64
	case int64:
		return I64
	case int32:
		return I32
	case uint8:
		return U8
	case BFloat16:
		return BF16
	}
	return typeOf(reflect.TypeFor[T]())
}

// typeOf returns the Type that a Go type stands for, under any name.
func typeOf(rt reflect.Type) Type {
	switch rt.Kind() {
	case reflect.Int8:
		return I8
	case reflect.Int16:
		return I16
	case reflect.Int32:
		return I32
	case reflect.Int64:
		return I64
	case reflect.Int:
		return I32 + Type(unsafe.Sizeof(int(0))/8)
	case reflect.Uint8:
		return U8
	case reflect.Uint16:
		return U16
	case reflect.Uint32:
		return U32
	case reflect.Uint64:
		return U64
	case reflect.Uint, reflect.Uintptr:
		return U32 + Type(unsafe.Sizeof(uint(0))/8)
	case reflect.Float32:
		return F32
	case reflect.Float64:
		return F64
	case reflect.Complex64:
		return C64
	case reflect.Complex128:
		return C128
	case reflect.Bool:
		return Bool
	}
	return structType(rt)
}

func structType(rt reflect.Type) Type {
	switch rt {
	case reflect.TypeFor[Float16]():
		return F16
	case reflect.TypeFor[BFloat16]():
		return BF16
	case reflect.TypeFor[Loc[int32]]():
		return I32Loc
	case reflect.TypeFor[Loc[int64]]():
		return I64Loc
	case reflect.TypeFor[Loc[float32]]():
		return F32Loc
	case reflect.TypeFor[Loc[float64]]():
		return F64Loc
	}
	return NoType
}
