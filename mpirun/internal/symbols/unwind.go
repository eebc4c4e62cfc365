package symbols

import (
	"encoding/binary"
	"maps"
	"sort"
)

// Registers are the registers of x86-64 by their numbers in DWARF.
type Registers struct {
	Value [17]uint64
	Known [17]bool
}

// Registers needed for callers of functions.
const (
	FramePointer = 6
	StackPointer = 7
	PC           = 16
)

// Set sets a register.
func (r *Registers) Set(n int, v uint64) { r.Value[n], r.Known[n] = v, true }

// calleeSaved reports whether functions preserve a register for their callers.
func calleeSaved(n int) bool { return n == 3 || n == FramePointer || n >= 12 && n < PC }

// Unwind replaces the registers of a function by its caller's. offset is the function's place,
// from the beginning of the program in memory, and read reads a word of the process. ok is false
// if the caller is unknown: the function has none, or was compiled without unwind tables; or,
// with lacks, because the value of a necessary register is missing.
func (p *Program) Unwind(offset uint64, r *Registers, read func(at uint64) (uint64, bool)) (ok, lacks bool) {
	row, ok := p.row(offset + p.base())
	if !ok || row.cfa < 0 || row.cfa > PC {
		return false, false
	}
	if !r.Known[row.cfa] {
		return false, true
	}
	frame := r.Value[row.cfa] + uint64(row.cfaOffset)
	var caller Registers
	for n := range r.Value {
		switch at, saved := row.saved[n]; {
		case saved && at.known:
			if v, ok := read(frame + uint64(at.offset)); ok {
				caller.Set(n, v)
			}
		case !saved && calleeSaved(n) && r.Known[n]:
			caller.Set(n, r.Value[n])
		}
	}
	caller.Set(StackPointer, frame)
	*r = caller
	return r.Known[PC] && r.Value[PC] != 0, false
}

// A row holds the places of the registers of a function's caller, at one address in the function.
type row struct {
	cfa       int // register that gives the frame, -1 for another way
	cfaOffset int64
	saved     map[int]place
}

// A place is the place in the frame of a saved register, if known.
type place struct {
	offset int64
	known  bool
}

func (r row) clone() row { return row{r.cfa, r.cfaOffset, maps.Clone(r.saved)} }

// An entry is the instructions of one function in .eh_frame, with its CIE.
type entry struct {
	lo, hi uint64
	common *common
	code   []byte
}

// A common is a CIE, the common part of several functions.
type common struct {
	codeAlign uint64
	dataAlign int64
	pointers  byte // encoding of addresses
	sized     bool // augmentation data follows
	code      []byte
}

// row returns the row of an address.
func (p *Program) row(at uint64) (row, bool) {
	if p.entries == nil {
		p.entries = p.readEntries()
	}
	i := sort.Search(len(p.entries), func(i int) bool { return p.entries[i].hi > at })
	if i == len(p.entries) || at < p.entries[i].lo {
		return row{}, false
	}
	e := &p.entries[i]
	m := machine{common: e.common, at: e.lo, stop: at, row: row{cfa: -1, saved: map[int]place{}}}
	if !m.run(e.common.code) {
		return row{}, false
	}
	m.initial = m.row.clone()
	return m.row, m.run(e.code)
}

// readEntries reads .eh_frame, as far as the encoding is supported.
func (p *Program) readEntries() []entry {
	entries := []entry{}
	section := p.file.Section(".eh_frame")
	if section == nil {
		return entries
	}
	data, err := section.Data()
	if err != nil {
		return entries
	}
	commons := map[int]*common{}
	for at := 0; at+8 <= len(data); {
		n := int(binary.LittleEndian.Uint32(data[at:]))
		if n == 0 || n >= 1<<31 || at+4+n > len(data) {
			break
		}
		b := &reader{data: data[:at+4+n], at: at + 4, base: section.Addr}
		if id := int(b.fixed(4)); id == 0 {
			commons[at] = b.common()
		} else if c := commons[at+4-id]; c != nil {
			if e := b.entry(c); !b.failed {
				entries = append(entries, e)
			}
		}
		at += 4 + n
	}
	sort.Slice(entries, func(i, j int) bool { return entries[i].lo < entries[j].lo })
	return entries
}

// A reader reads the fields of .eh_frame, which is in memory at base.
type reader struct {
	data   []byte
	at     int
	base   uint64
	failed bool
}

func (b *reader) fixed(n int) (v uint64) {
	if b.at+n > len(b.data) {
		b.failed, b.at = true, len(b.data)
		return 0
	}
	for i := range n {
		v |= uint64(b.data[b.at+i]) << (8 * i)
	}
	b.at += n
	return v
}

func (b *reader) skip(n uint64) {
	if n > uint64(len(b.data)-b.at) {
		b.failed, n = true, uint64(len(b.data)-b.at)
	}
	b.at += int(n)
}

func (b *reader) unsigned() uint64 {
	v, n := binary.Uvarint(b.data[b.at:]) // the same as LEB128
	if n <= 0 {
		b.failed, n = true, len(b.data)-b.at
	}
	b.at += n
	return v
}

func (b *reader) signed() (v int64) {
	for shift := 0; shift < 64 && !b.failed; shift += 7 {
		c := b.fixed(1)
		v |= int64(c&0x7f) << shift
		if c < 0x80 {
			if c >= 0x40 && shift < 57 {
				v |= -1 << (shift + 7)
			}
			break
		}
	}
	return v
}

// pointer reads an address by its encoding (DW_EH_PE_*).
func (b *reader) pointer(encoding byte) uint64 {
	here := b.base + uint64(b.at)
	var v uint64
	switch encoding & 0xf {
	case 0x0, 0x4, 0xc:
		v = b.fixed(8)
	case 0x3:
		v = b.fixed(4)
	case 0xb:
		v = uint64(int32(b.fixed(4)))
	default:
		b.failed = true
	}
	switch encoding & 0xf0 {
	case 0x00:
	case 0x10:
		v += here
	default:
		b.failed = true
	}
	return v
}

func (b *reader) common() *common {
	c := &common{}
	b.fixed(1) // version
	augmentation := ""
	for ch := b.fixed(1); ch != 0 && !b.failed; ch = b.fixed(1) {
		augmentation += string(rune(ch))
	}
	c.codeAlign, c.dataAlign = b.unsigned(), b.signed()
	if b.unsigned() != PC {
		return nil
	}
	for i, ch := range augmentation {
		switch {
		case i == 0 && ch == 'z':
			c.sized = true
			b.unsigned()
		case ch == 'R':
			c.pointers = byte(b.fixed(1))
		case ch == 'P':
			b.pointer(byte(b.fixed(1)) & 0x7f) // the place alone is indirect
		case ch == 'L':
			b.fixed(1)
		default: // 'S' too: the caller of a signal handler is found by expressions
			return nil
		}
	}
	if b.failed {
		return nil
	}
	c.code = b.data[b.at:]
	return c
}

func (b *reader) entry(c *common) entry {
	lo := b.pointer(c.pointers)
	e := entry{lo: lo, hi: lo + b.pointer(c.pointers&0xf), common: c}
	if c.sized {
		b.skip(b.unsigned())
	}
	e.code = b.data[b.at:]
	return e
}
