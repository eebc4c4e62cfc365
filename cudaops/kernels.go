package cudaops

import (
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"gompi/cudaops/internal/driver"
	"gompi/internal/mem"
)

// The kernels of kernels.cu as text, which the driver compiles for the device, be it of
// compute capability 7.5 or newer: `make ptx` writes it.
//
//go:embed kernels_sm75.ptx
var ptx string

// inlined is how many operands kernelArgs has room for.
const inlined = 8

// kernelArgs is the parameter of all kernels, Args in kernels.cu.
type kernelArgs struct {
	dst                     uint64
	src                     [inlined]uint64
	more                    uint64 // address of an array of those that follow src
	operands                uint64
	elements, head, vectors uint64
	by                      uint64
}

// Reduce stores srcs[0] op srcs[1] op ... into dst. It reads every operand once
// and writes once.
func (d *Device) Reduce(op Op, dst Buffer, srcs ...Buffer) error {
	s, err := d.borrow()
	if err != nil {
		return err
	}
	defer d.giveBack(s)
	return s.reduce(s.event, op, dst, srcs)
}

// Divide divides the elements of b by n > 0.
func (d *Device) Divide(b Buffer, n int) error {
	s, err := d.borrow()
	if err != nil {
		return err
	}
	defer d.giveBack(s)
	return s.divide(s.event, b, n)
}

// Reduce puts a reduction on the Stream, as Device.Reduce.
func (s *Stream) Reduce(op Op, dst Buffer, srcs ...Buffer) error { return s.reduce(0, op, dst, srcs) }

// Divide puts a division on the Stream, as Device.Divide.
func (s *Stream) Divide(b Buffer, n int) error { return s.divide(0, b, n) }

func (s *Stream) reduce(wait driver.Event, op Op, dst Buffer, srcs []Buffer) error {
	if err := s.checkReduction(op, dst, srcs); err != nil {
		return s.d.failed("reduce", err)
	}
	if len(srcs) == 1 {
		if srcs[0].Addr() == dst.Addr() {
			return nil
		}
		return s.copy(dst, srcs[0], wait)
	}
	return s.run(wait, op.String(), kernelType(op, dst.Type()), dst, srcs, len(srcs))
}

func (s *Stream) checkReduction(op Op, dst Buffer, srcs []Buffer) error {
	if len(srcs) == 0 {
		return errors.New("no operands")
	}
	if !op.Defined(dst.Type()) {
		return fmt.Errorf("operator %v is not defined for %v", op, dst.Type())
	}
	if dst.Len() > 0 && dst.Space() != s.d {
		return fmt.Errorf("result in %s: want memory of %s", dst.Space().Name(), s.d.name)
	}
	for _, b := range srcs {
		switch {
		case b.Type() != dst.Type():
			return fmt.Errorf("operand of %v and result of %v: want one type", b.Type(), dst.Type())
		case b.Len() != dst.Len():
			return fmt.Errorf("operand of %d elements and result of %d: want equal numbers", b.Len(), dst.Len())
		case b.Len() > 0 && b.Space() != s.d:
			return fmt.Errorf("operand in %s: want memory of %s", b.Space().Name(), s.d.name)
		}
	}
	return nil
}

func (s *Stream) divide(wait driver.Event, b Buffer, n int) error {
	if !mem.Avg.Defined(b.Type()) || n < 1 || b.Len() > 0 && b.Space() != s.d {
		return s.d.failed("divide", fmt.Errorf("%v in %s by %d: want numbers in %s and a positive divisor", b.Type(), b.Space().Name(), n, s.d.name))
	}
	return s.run(wait, mem.Avg.String(), kernelType(mem.Avg, b.Type()), b, []Buffer{b}, n)
}

// kernelType returns the type whose kernel reduces elements of t.
func kernelType(op Op, t Type) Type {
	switch op {
	case mem.Sum:
		return unsigned(parts(t))
	case mem.Avg:
		return parts(t)
	case mem.Prod:
		return unsigned(t)
	case mem.LAnd, mem.LOr, mem.LXor:
		if t == mem.Bool {
			return mem.U8
		}
		return unsigned(t)
	case mem.BAnd, mem.BOr, mem.BXor:
		return mem.U8
	}
	return t
}

// unsigned returns the type that wraps around alike.
func unsigned(t Type) Type {
	if t >= mem.I8 && t <= mem.I64 {
		return t - mem.I8 + mem.U8
	}
	return t
}

// parts returns the type of a complex number's parts.
func parts(t Type) Type {
	switch t {
	case mem.C64:
		return mem.F32
	case mem.C128:
		return mem.F64
	}
	return t
}

// threads is the number of threads of a block.
const threads = 256

// run launches the kernel of that name for elements of type t. Operators that
// were checked leave nothing that can go wrong on the device.
func (s *Stream) run(wait driver.Event, op string, t Type, dst Buffer, srcs []Buffer, by int) error {
	if dst.Len() == 0 {
		return nil
	}
	kernel, err := s.d.kernel(kernelName{op, t})
	if err != nil {
		return err
	}
	a := kernelArgs{dst: uint64(dst.Addr()), operands: uint64(len(srcs)), elements: uint64(dst.Size() / t.Size()), by: uint64(by)}
	for i, src := range srcs[:min(len(srcs), inlined)] {
		a.src[i] = uint64(src.Addr())
	}
	if err := s.list(&a, srcs); err != nil {
		return err
	}
	if err := a.arrange(t, dst, srcs); err != nil {
		return s.d.failed(op, err)
	}
	work := max((a.vectors+1)/2, a.elements-a.vectors*16/uint64(t.Size())) // of threads: two vectors or an element
	grid := min(int(work+threads-1)/threads, s.d.what.Processors*2048/threads)
	return s.launch(kernel, grid, threads, unsafe.Pointer(&a), wait)
}

// leastTable is the least number of addresses that a Stream's operand table holds. Replacing the
// table by a larger one frees it, which waits for all work of the device.
const leastTable = 256

// list stores the addresses of operands that a has no room for where the kernel
// finds them. The copy is in the Stream's order; the driver has read addrs, which is
// not pinned, when the call returns.
func (s *Stream) list(a *kernelArgs, srcs []Buffer) error {
	if len(srcs) <= inlined {
		return nil
	}
	more := srcs[inlined:]
	if len(more) > s.room {
		if s.table != 0 {
			driver.Free(s.ctx, s.table)
		}
		s.table, s.room = 0, 0
		room := max(len(more), leastTable)
		table, err := driver.Alloc(s.ctx, 8*room, s.handle)
		if err != nil {
			return s.d.failed(fmt.Sprintf("reduce of %d operands", len(srcs)), err)
		}
		s.table, s.room = table, room
	}
	addrs := make([]uint64, len(more))
	for i, src := range more {
		addrs[i] = uint64(src.Addr())
	}
	a.more = uint64(s.table)
	err := driver.Copy(s.ctx, s.table, nil, 0, unsafe.Pointer(&addrs[0]), 8*len(addrs), s.handle, 0)
	return s.d.failed("reduce", err)
}

// arrange divides the elements into 16-byte vectors, which are aligned in all
// operands, and what is before and after them.
func (a *kernelArgs) arrange(t Type, dst Buffer, srcs []Buffer) error {
	size, need := uint64(t.Size()), uint64(alignment(t))
	start := uint64(dst.Addr())
	differ := start % need // bits in which addresses differ, or are not aligned
	for _, b := range srcs {
		differ |= uint64(b.Addr())%need | (uint64(b.Addr())^start)%16
	}
	if differ%need != 0 {
		return fmt.Errorf("a buffer of %v is at an address that %d does not divide", t, need)
	}
	before := -start % 16
	if differ%16 == 0 && before%size == 0 && before/size < a.elements {
		a.head = before / size
		a.vectors = (a.elements - a.head) * size / 16
	}
	return nil
}

// alignment is what kernels need of the address of a t.
func alignment(t Type) int {
	switch t {
	case mem.C64:
		return 4
	case mem.C128, mem.I32Loc, mem.I64Loc, mem.F32Loc, mem.F64Loc:
		return 8
	}
	return t.Size()
}

// A kernelName names a kernel of kernels.cu by its operator and element type.
type kernelName struct {
	op  string
	typ Type
}

func (n kernelName) String() string { return n.op + "_" + n.typ.String() }

// kernel returns a kernel of kernels.cu. It is compiled when first asked for, and
// alone, which is a small part of compiling all.
func (d *Device) kernel(n kernelName) (driver.Kernel, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if k := d.kernels[n]; k != 0 {
		return k, nil
	}
	k, err := d.compile(n.String())
	if err != nil {
		return 0, d.failed("kernel "+n.String(), err)
	}
	d.kernels[n] = k
	return k, nil
}

func (d *Device) compile(name string) (driver.Kernel, error) {
	ctx, err := d.context()
	if err != nil {
		return 0, err
	}
	m, err := driver.LoadModule(ctx, cut(name))
	if err != nil {
		return 0, err
	}
	return driver.FindKernel(ctx, m, name)
}

// cut returns the module that has only the kernel of that name.
func cut(name string) string {
	const entry, end = "\n.visible .entry ", "\n}\n"
	head, _, _ := strings.Cut(ptx, entry)
	at := strings.Index(ptx, entry+name+"(")
	if at < 0 {
		return head
	}
	body := ptx[at:]
	return head + body[:strings.Index(body, end)+len(end)]
}
