package symbols

// A machine runs the instructions of .eh_frame up to the row of an address.
type machine struct {
	common  *common
	at      uint64 // of the row
	stop    uint64 // address of the wanted row
	row     row
	initial row // row of the CIE
	kept    []row
}

// Instructions (DWARF 5, section 7.24). The first three have an operand in their low six bits.
const (
	opAdvance        = 0x40
	opSaved          = 0x80
	opRestore        = 0xc0
	opNop            = 0x00
	opSetLoc         = 0x01
	opAdvance1       = 0x02
	opAdvance2       = 0x03
	opAdvance4       = 0x04
	opSavedExtended  = 0x05
	opRestoreExt     = 0x06
	opUndefined      = 0x07
	opSameValue      = 0x08
	opRegister       = 0x09
	opRemember       = 0x0a
	opRestoreState   = 0x0b
	opFrame          = 0x0c
	opFrameRegister  = 0x0d
	opFrameOffset    = 0x0e
	opFrameExpr      = 0x0f
	opExpression     = 0x10
	opSavedSigned    = 0x11
	opFrameSigned    = 0x12
	opFrameOffSigned = 0x13
	opValExpression  = 0x16
	opArgsSize       = 0x2e
)

// run reports false for an unknown instruction.
func (m *machine) run(code []byte) bool {
	b := &reader{data: code}
	for b.at < len(code) && !b.failed {
		op := byte(b.fixed(1))
		low := uint64(op & 0x3f)
		switch op & 0xc0 {
		case opAdvance:
			if m.advance(low) {
				return true
			}
			continue
		case opSaved:
			m.save(low, int64(b.unsigned()))
			continue
		case opRestore:
			m.restore(low)
			continue
		}
		if op >= opAdvance1 && op <= opAdvance4 {
			if m.advance(b.fixed(1 << (op - opAdvance1))) {
				return true
			}
			continue
		}
		if !m.extended(op, b) {
			return false
		}
	}
	return !b.failed
}

// advance reports whether the current row is the wanted one.
func (m *machine) advance(n uint64) bool {
	m.at += n * m.common.codeAlign
	return m.at > m.stop
}

func (m *machine) save(n uint64, factored int64) {
	m.row.saved[int(n)] = place{factored * m.common.dataAlign, true}
}

func (m *machine) restore(n uint64) {
	if at, ok := m.initial.saved[int(n)]; ok {
		m.row.saved[int(n)] = at
	} else {
		delete(m.row.saved, int(n))
	}
}

func (m *machine) extended(op byte, b *reader) bool {
	switch op {
	case opNop:
	case opSavedExtended:
		n := b.unsigned()
		m.save(n, int64(b.unsigned()))
	case opSavedSigned:
		n := b.unsigned()
		m.save(n, b.signed())
	case opRestoreExt:
		m.restore(b.unsigned())
	case opUndefined:
		m.row.saved[int(b.unsigned())] = place{}
	case opSameValue:
		delete(m.row.saved, int(b.unsigned()))
	case opRegister:
		m.row.saved[int(b.unsigned())] = place{}
		b.unsigned()
	case opRemember:
		m.kept = append(m.kept, m.row.clone())
	case opRestoreState:
		if len(m.kept) == 0 {
			return false
		}
		m.row, m.kept = m.kept[len(m.kept)-1], m.kept[:len(m.kept)-1]
	case opFrame:
		m.row.cfa = int(b.unsigned())
		m.row.cfaOffset = int64(b.unsigned())
	case opFrameSigned:
		m.row.cfa = int(b.unsigned())
		m.row.cfaOffset = b.signed() * m.common.dataAlign
	case opFrameRegister:
		m.row.cfa = int(b.unsigned())
	case opFrameOffset:
		m.row.cfaOffset = int64(b.unsigned())
	case opFrameOffSigned:
		m.row.cfaOffset = b.signed() * m.common.dataAlign
	case opFrameExpr:
		m.row.cfa = -1
		b.skip(b.unsigned())
	case opExpression, opValExpression:
		m.row.saved[int(b.unsigned())] = place{}
		b.skip(b.unsigned())
	case opArgsSize:
		b.unsigned()
	default: // opSetLoc, too
		return false
	}
	return true
}
