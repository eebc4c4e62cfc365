// The reductions of device memory. kernel.h says how such a file is compiled.
//
// All kernels have one parameter, the struct Args; a thread takes a vector of 16
// bytes in every so many.

#include "kernel.h"

// Inline pointers of a kernel: what a reduction on one host rarely exceeds.
constexpr int inlined = 8;

// Args is mirrored by kernelArgs in kernels.go. All addresses are of device
// memory, or of pinned host memory. Elements [0, head) and those after the
// vectors are taken one by one; the vectors are aligned in every operand.
struct Args {
  u64 dst;
  u64 src[inlined];
  u64 more;     // array of the operands that follow src
  u64 k;        // operands
  u64 elements;
  u64 head;     // elements before the first vector
  u64 vectors;
  u64 by;       // divisor
};

// ---- elements

struct Half { u16 bits; };
struct Bfloat { u16 bits; };
template <class T> struct Complex { T re, im; };
template <class T> struct alignas(8) Loc { T value; alignas(8) i64 index; };
struct alignas(16) Vec { u64 x, y; };
typedef u64 Words __attribute__((vector_size(16)));

// Word<n>::type is the unsigned number of n bytes.
template <int size> struct Word;
template <> struct Word<1> { typedef u8 type; };
template <> struct Word<2> { typedef u16 type; };
template <> struct Word<4> { typedef u32 type; };
template <> struct Word<8> { typedef u64 type; };

// Sums<T> says what elements of T are combined in: T, but for 16-bit floats, which
// are rounded once, at the end.
template <class T> struct Sums {
  typedef T Acc;
  MEMBER T widen(T x) { return x; }
  MEMBER T narrow(T x) { return x; }
};

template <> struct Sums<Half> {
  typedef float Acc;
  MEMBER float widen(Half h) {
#ifdef __CUDA__
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h.bits));
    return f;
#else
    return (float)__builtin_bit_cast(_Float16, h.bits);
#endif
  }
  MEMBER Half narrow(float f) {
    Half h;
#ifdef __CUDA__
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h.bits) : "f"(f));
#else
    h.bits = __builtin_bit_cast(u16, (_Float16)f);
#endif
    return h;
  }
};

template <> struct Sums<Bfloat> {
  typedef float Acc;
  MEMBER float widen(Bfloat h) { return __builtin_bit_cast(float, (u32)h.bits << 16); }
  MEMBER Bfloat narrow(float f) {
    Bfloat h;
    u32 b = __builtin_bit_cast(u32, f);
    h.bits = f != f ? (u16)(b >> 16 | 0x40) : (u16)((b + 0x7fff + (b >> 16 & 1)) >> 16);
    return h;
  }
};

// Lanes<T> takes the elements of T out of a vector and puts them in. It shifts
// words: a union, or an array of 16-bit numbers, would go through local memory.
template <class T, int size = sizeof(T)> struct Lanes {
  typedef typename Word<size>::type Bits;
  static constexpr int perWord = 8 / size;
  MEMBER T get(Vec v, int i) {
    return __builtin_bit_cast(T, (Bits)((i < perWord ? v.x : v.y) >> 8 * size * (i % perWord)));
  }
  MEMBER void put(Vec &v, int i, T x) {
    u64 word = (u64)__builtin_bit_cast(Bits, x) << 8 * size * (i % perWord);
    (i < perWord ? v.x : v.y) |= word;
  }
};
template <class T> struct Lanes<T, 16> {
  MEMBER T get(Vec v, int) { return __builtin_bit_cast(T, v); }
  MEMBER void put(Vec &v, int, T x) { v = __builtin_bit_cast(Vec, x); }
};

// ---- memory

DEVICE Vec loadVector(u64 addr) {
  auto v = *reach<Words>(addr);
  return Vec{v[0], v[1]};
}

DEVICE void storeVector(u64 addr, Vec v) { *reach<Words>(addr) = Words{v.x, v.y}; }

// Element<T> loads and stores one element, as one word or, where it is aligned
// to half its size only, as two.
template <class T, int words = sizeof(T) / alignof(T)> struct Element {
  typedef typename Word<sizeof(T)>::type W;
  MEMBER T load(u64 addr) { return __builtin_bit_cast(T, *reach<W>(addr)); }
  MEMBER void store(u64 addr, T x) { *reach<W>(addr) = __builtin_bit_cast(W, x); }
};
template <class T> struct Element<T, 2> {
  typedef typename Word<alignof(T)>::type W;
  struct Two { W a, b; };
  MEMBER T load(u64 addr) { return __builtin_bit_cast(T, Two{*reach<W>(addr), *reach<W>(addr + sizeof(W))}); }
  MEMBER void store(u64 addr, T x) {
    Two t = __builtin_bit_cast(Two, x);
    *reach<W>(addr) = t.a;
    *reach<W>(addr + sizeof(W)) = t.b;
  }
};

// ---- operators, with the results that internal/mem promises

// first reports whether a is the smaller of two numbers that may be equal, where
// -0 is smaller than +0 and neither is NaN.
template <class T> DEVICE bool first(T a, T b) { return a <= b; }
DEVICE bool first(float a, float b) { return a < b || (a == b && __builtin_bit_cast(i32, a) < 0); }
DEVICE bool first(double a, double b) { return a < b || (a == b && __builtin_bit_cast(i64, a) < 0); }

// before reports whether w goes before v in a tie.
template <class T> DEVICE bool before(Loc<T> w, Loc<T> v) {
  bool wNaN = w.value != w.value, vNaN = v.value != v.value;
  return wNaN != vNaN ? wNaN : w.index < v.index;
}

struct Operator {
  template <class A> MEMBER A last(A a, u64) { return a; }
};
struct Sum : Operator {
  template <class A> MEMBER A of(A a, A b) { return a + b; }
};
struct Prod : Operator {
  template <class A> MEMBER A of(A a, A b) { return a * b; }
  MEMBER u16 of(u16 a, u16 b) { return (u16)((u32)a * b); } // 16 bits would be multiplied as int, and overflow
  template <class T> MEMBER Complex<T> of(Complex<T> a, Complex<T> b) {
    return Complex<T>{a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
};
struct Min : Operator {
  template <class A> MEMBER A of(A a, A b) { return a != a ? a : b != b ? b : first(a, b) ? a : b; }
};
struct Max : Operator {
  template <class A> MEMBER A of(A a, A b) { return a != a ? a : b != b ? b : first(a, b) ? b : a; }
};
struct LAnd : Operator {
  template <class A> MEMBER A of(A a, A b) { return a && b; }
};
struct LOr : Operator {
  template <class A> MEMBER A of(A a, A b) { return a || b; }
};
struct LXor : Operator {
  template <class A> MEMBER A of(A a, A b) { return !a != !b; }
};
struct BAnd : Operator {
  template <class A> MEMBER A of(A a, A b) { return a & b; }
};
struct BOr : Operator {
  template <class A> MEMBER A of(A a, A b) { return a | b; }
};
struct BXor : Operator {
  template <class A> MEMBER A of(A a, A b) { return a ^ b; }
};
struct MinLoc : Operator {
  template <class T> MEMBER Loc<T> of(Loc<T> v, Loc<T> w) {
    return w.value < v.value || (!(v.value < w.value) && before(w, v)) ? w : v;
  }
};
struct MaxLoc : Operator {
  template <class T> MEMBER Loc<T> of(Loc<T> v, Loc<T> w) {
    return w.value > v.value || (!(v.value > w.value) && before(w, v)) ? w : v;
  }
};

// Avg divides a sum.
struct Avg {
  MEMBER float of(float a, float b) { return a + b; }
  MEMBER double of(double a, double b) { return a + b; }
  MEMBER float last(float a, u64 by) { return a / (float)by; }
  MEMBER double last(double a, u64 by) { return a / (double)by; }
};

// ---- loops

// Operands hands out the addresses of the operands after the first, in order.
// They move up in registers: indexed by a variable, the parameters would be
// copied to local memory.
struct Operands {
  u64 next[inlined - 1], more;

  METHOD Operands(const Args &a) : more(a.more) {
#pragma unroll
    for (int j = 1; j < inlined; j++) next[j - 1] = a.src[j];
  }
  // take returns the address of operand j, which follows the one taken last.
  METHOD u64 take(u64 j) {
    if (j >= inlined) return *reach<u64>(more + 8 * (j - inlined));
    u64 first = next[0];
#pragma unroll
    for (int j = 1; j < inlined - 1; j++) next[j - 1] = next[j];
    return first;
  }
};

template <class T, class Op> DEVICE void combineElement(const Args &a, u64 offset) {
  Operands operands(a);
  auto acc = Sums<T>::widen(Element<T>::load(a.src[0] + offset));
#pragma unroll 1
  for (u64 j = 1; j < a.k; j++) acc = Op::of(acc, Sums<T>::widen(Element<T>::load(operands.take(j) + offset)));
  Element<T>::store(a.dst + offset, Sums<T>::narrow(Op::last(acc, a.by)));
}

// A Strand is U vectors of the result, one every stride bytes, as accumulators in
// registers. U loads are under way at a time.
template <class T, class Op, int U> struct Strand {
  static constexpr int lanes = 16 / sizeof(T);
  typename Sums<T>::Acc acc[U * lanes];

  template <bool start> METHOD void take(u64 src, u64 stride) {
    Vec in[U];
#pragma unroll
    for (int u = 0; u < U; u++) in[u] = loadVector(src + u * stride);
#pragma unroll
    for (int i = 0; i < U * lanes; i++) {
      auto x = Sums<T>::widen(Lanes<T>::get(in[i / lanes], i % lanes));
      acc[i] = start ? x : Op::of(acc[i], x);
    }
  }

  METHOD void give(u64 dst, u64 stride, u64 by) {
#pragma unroll
    for (int u = 0; u < U; u++) {
      Vec out = {0, 0};
#pragma unroll
      for (int i = 0; i < lanes; i++) Lanes<T>::put(out, i, Sums<T>::narrow(Op::last(acc[u * lanes + i], by)));
      storeVector(dst + u * stride, out);
    }
  }
};

template <class T, class Op, int U> DEVICE void combineVectors(const Args &a, u64 offset, u64 stride) {
  Operands operands(a);
  Strand<T, Op, U> s;
  s.template take<true>(a.src[0] + offset, stride);
#pragma unroll 1
  for (u64 j = 1; j < a.k; j++) s.template take<false>(operands.take(j) + offset, stride);
  s.give(a.dst + offset, stride, a.by);
}

template <class T, class Op> DEVICE void reduce(const Args &a) {
  // Two loads of 16 bytes from each of 2048 threads are 64 KiB under way per
  // multiprocessor: more than its share of bandwidth times latency, some 30 KiB
  // by an H200's data sheet. No GPU has measured it yet.
  constexpr int U = 2;
  u64 first = a.head * sizeof(T), stride = threads(), v = thread();
  for (; v + (U - 1) * stride < a.vectors; v += U * stride) combineVectors<T, Op, U>(a, first + 16 * v, 16 * stride);
  for (; v < a.vectors; v += stride) combineVectors<T, Op, 1>(a, first + 16 * v, 0);
  u64 inside = a.vectors * (16 / sizeof(T));
  for (u64 i = thread(); i < a.elements - inside; i += stride)
    combineElement<T, Op>(a, (i < a.head ? i : i + inside) * sizeof(T));
}

// ---- kernels: operator_type. Where signs do not matter, unsigned ones serve all.

#define REDUCE(name, Op, T) \
  KERNEL(name, Args) { reduce<T, Op>(a); }

#define UNSIGNED(op, Op) REDUCE(op##_uint8, Op, u8) REDUCE(op##_uint16, Op, u16) REDUCE(op##_uint32, Op, u32) REDUCE(op##_uint64, Op, u64)
#define SIGNED(op, Op) REDUCE(op##_int8, Op, i8) REDUCE(op##_int16, Op, i16) REDUCE(op##_int32, Op, i32) REDUCE(op##_int64, Op, i64)
#define FLOATS(op, Op) REDUCE(op##_float16, Op, Half) REDUCE(op##_bfloat16, Op, Bfloat) REDUCE(op##_float32, Op, float) REDUCE(op##_float64, Op, double)
#define LOCS(op, Op) \
  REDUCE(op##_int32loc, Op, Loc<i32>) REDUCE(op##_int64loc, Op, Loc<i64>) REDUCE(op##_float32loc, Op, Loc<float>) REDUCE(op##_float64loc, Op, Loc<double>)

UNSIGNED(sum, Sum)
FLOATS(sum, Sum)
UNSIGNED(prod, Prod)
FLOATS(prod, Prod)
REDUCE(prod_complex64, Prod, Complex<float>)
REDUCE(prod_complex128, Prod, Complex<double>)
UNSIGNED(min, Min)
SIGNED(min, Min)
FLOATS(min, Min)
UNSIGNED(max, Max)
SIGNED(max, Max)
FLOATS(max, Max)
UNSIGNED(land, LAnd)
UNSIGNED(lor, LOr)
UNSIGNED(lxor, LXor)
REDUCE(band_uint8, BAnd, u8)
REDUCE(bor_uint8, BOr, u8)
REDUCE(bxor_uint8, BXor, u8)
LOCS(minloc, MinLoc)
LOCS(maxloc, MaxLoc)
FLOATS(avg, Avg)
