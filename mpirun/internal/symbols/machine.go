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

// run runs instructions by their numbers in DWARF 5, section 7.24, some of which have an operand in
// their low six bits. It reports false for an unknown one.
func (m *machine) run(code []byte) bool {
	b := &reader{data: code}
	for b.at < len(code) && !b.failed {
		op := byte(b.fixed(1))
		low := uint64(op & 0x3f)
		switch op & 0xc0 {
		case 0x40: // advance_loc
			if m.advance(low) {
				return true
			}
			continue
		case 0x80: // offset
			m.save(low, int64(b.unsigned()))
			continue
		case 0xc0: // restore
			m.restore(low)
			continue
		}
		if op >= 0x02 && op <= 0x04 { // advance_loc1 to 4
			if m.advance(b.fixed(1 << (op - 0x02))) {
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
	case 0x00: // nop
	case 0x05: // offset_extended
		n := b.unsigned()
		m.save(n, int64(b.unsigned()))
	case 0x11: // offset_extended_sf
		n := b.unsigned()
		m.save(n, b.signed())
	case 0x06: // restore_extended
		m.restore(b.unsigned())
	case 0x07: // undefined
		m.row.saved[int(b.unsigned())] = place{}
	case 0x08: // same_value
		delete(m.row.saved, int(b.unsigned()))
	case 0x09: // register
		m.row.saved[int(b.unsigned())] = place{}
		b.unsigned()
	case 0x0a: // remember_state
		m.kept = append(m.kept, m.row.clone())
	case 0x0b: // restore_state
		if len(m.kept) == 0 {
			return false
		}
		m.row, m.kept = m.kept[len(m.kept)-1], m.kept[:len(m.kept)-1]
	case 0x0c: // def_cfa
		m.row.cfa = int(b.unsigned())
		m.row.cfaOffset = int64(b.unsigned())
	case 0x12: // def_cfa_sf
		m.row.cfa = int(b.unsigned())
		m.row.cfaOffset = b.signed() * m.common.dataAlign
	case 0x0d: // def_cfa_register
		m.row.cfa = int(b.unsigned())
	case 0x0e: // def_cfa_offset
		m.row.cfaOffset = int64(b.unsigned())
	case 0x13: // def_cfa_offset_sf
		m.row.cfaOffset = b.signed() * m.common.dataAlign
	case 0x0f: // def_cfa_expression
		m.row.cfa = -1
		b.skip(b.unsigned())
	case 0x10, 0x16: // expression, val_expression
		m.row.saved[int(b.unsigned())] = place{}
		b.skip(b.unsigned())
	case 0x2e: // GNU_args_size
		b.unsigned()
	default: // set_loc, too
		return false
	}
	return true
}
