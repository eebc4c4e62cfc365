// Package symbols finds the lines of programs in C, C++ and Fortran that addresses are of.
package symbols

import (
	"debug/dwarf"
	"debug/elf"
	"fmt"
	"path"
)

// A Program is an executable or a library. The zero Program knows no addresses.
type Program struct {
	file    *elf.File
	lines   *dwarf.Data // nil if it was compiled without -g
	symbols []elf.Symbol
}

// Open reads a file, which may have been stripped.
func Open(name string) (*Program, error) {
	f, err := elf.Open(name)
	if err != nil {
		return nil, err
	}
	p := &Program{file: f}
	p.lines, _ = f.DWARF()
	p.symbols, _ = f.Symbols()
	return p, nil
}

// Close closes the file.
func (p *Program) Close() error { return p.file.Close() }

// Place returns where a call returns to, an address as far behind the beginning of the program in
// memory: "src/pair.c:55", or "compute+0x12" without lines, or "" if it is not known.
func (p *Program) Place(offset uint64) string {
	at := offset + p.base() - 1 // the call itself
	if line := p.line(at); line != "" {
		return line
	}
	for _, s := range p.symbols {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && at >= s.Value && at < s.Value+s.Size {
			return fmt.Sprintf("%s+0x%x", s.Name, at+1-s.Value)
		}
	}
	return ""
}

// base returns the address that the program was linked to begin at.
func (p *Program) base() uint64 {
	for _, s := range p.file.Progs {
		if s.Type == elf.PT_LOAD {
			return s.Vaddr&^(s.Align-1) - s.Off&^(s.Align-1)
		}
	}
	return 0
}

func (p *Program) line(at uint64) string {
	if p.lines == nil {
		return ""
	}
	unit, err := p.lines.Reader().SeekPC(at)
	if err != nil {
		return ""
	}
	lines, err := p.lines.LineReader(unit)
	if lines == nil || err != nil {
		return ""
	}
	var e dwarf.LineEntry
	if lines.SeekPC(at, &e) != nil || e.File == nil {
		return ""
	}
	return fmt.Sprintf("%s/%s:%d", path.Base(path.Dir(e.File.Name)), path.Base(e.File.Name), e.Line)
}
