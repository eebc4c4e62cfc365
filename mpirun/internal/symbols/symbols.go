// Package symbols finds the lines and functions at addresses of programs in C, C++ and Fortran,
// and the callers of functions.
package symbols

import (
	"cmp"
	"debug/dwarf"
	"debug/elf"
	"fmt"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// A Program is an executable or a library. The zero Program knows no addresses.
type Program struct {
	file    *elf.File
	lines   *dwarf.Data // nil if it was compiled without -g
	symbols []elf.Symbol
	dynamic []elf.Symbol // symbols left in a stripped file
	entries []entry      // nil before they are read
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
	p.dynamic, _ = f.DynamicSymbols()
	return p, nil
}

// Close closes the file.
func (p *Program) Close() error { return p.file.Close() }

// Places returns a function that turns places known by ranks of a program in C, "lmp+0x1234", into
// source lines. Other places, and places in no file, stay as they are.
func Places(program string) func(place string) string {
	file, err := Open(program)
	known := map[string]string{}
	return func(place string) string {
		offset, ours := strings.CutPrefix(place, filepath.Base(program)+"+0x")
		at, notHex := strconv.ParseUint(offset, 16, 64)
		if err != nil || !ours || notHex != nil {
			return place
		}
		if _, ok := known[place]; !ok {
			known[place] = cmp.Or(file.Place(at), place)
		}
		return known[place]
	}
}

// Place returns the place of a call by its return address, an offset from the beginning of the
// program in memory: "src/pair.c:55", or "compute+0x12" without lines, or "" if unknown.
func (p *Program) Place(offset uint64) string {
	at := offset + p.base() - 1 // the call itself
	if line := p.line(at); line != "" {
		return line
	}
	if s := function(p.symbols, at); s != nil {
		return fmt.Sprintf("%s+0x%x", s.Name, at+1-s.Value)
	}
	return ""
}

// Function returns the function of a return address, "" if unknown.
func (p *Program) Function(offset uint64) string {
	for _, all := range [][]elf.Symbol{p.symbols, p.dynamic} {
		if s := function(all, offset+p.base()-1); s != nil {
			return s.Name
		}
	}
	return ""
}

func function(all []elf.Symbol, at uint64) *elf.Symbol {
	for i := range all {
		if s := &all[i]; elf.ST_TYPE(s.Info) == elf.STT_FUNC && at >= s.Value && at < s.Value+s.Size {
			return s
		}
	}
	return nil
}

// Line returns the line of a return address, "" if it was compiled without -g.
func (p *Program) Line(offset uint64) string { return p.line(offset + p.base() - 1) }

// Variable returns the offset of an exported variable from the beginning of the program in
// memory.
func (p *Program) Variable(name string) (offset uint64, ok bool) {
	for _, s := range p.dynamic {
		if s.Name == name && elf.ST_TYPE(s.Info) == elf.STT_OBJECT && s.Section != elf.SHN_UNDEF {
			return s.Value - p.base(), true
		}
	}
	return 0, false
}

// base returns the link-time address of the program's beginning.
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
	e := seek(lines, at)
	if e.File == nil {
		return ""
	}
	return fmt.Sprintf("%s/%s:%d", path.Base(path.Dir(e.File.Name)), path.Base(e.File.Name), e.Line)
}

// seek returns the entry of an address, without a File if there is none. LineReader's own search
// ends at the first sequence of lines, but a unit has a sequence for each section: main has
// another.
func seek(lines *dwarf.LineReader, at uint64) dwarf.LineEntry {
	var before, next dwarf.LineEntry
	before.EndSequence = true
	for lines.Next(&next) == nil {
		if !before.EndSequence && before.Address <= at && at < next.Address {
			return before
		}
		before = next
	}
	return dwarf.LineEntry{}
}
