package proc

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"gompi/mpirun/internal/program"
	"gompi/mpirun/internal/stdio"
	"gompi/mpirun/internal/symbols"
)

// A walker finds the stacks of a C, C++ or Fortran program without gdb, by the program's memory
// and the unwind tables of compilers. The kernel reports the stack pointer of a thread in a
// system call. A thread in gompi is on a stack of Go, and the MPI library has noted the frame
// that entered Go (see frames.py). A running thread, or a thread whose tables need another
// register, is stopped for a moment, as gdb does to all threads.
type walker struct {
	dir      string // of the process in /proc
	root     string // of its files
	memory   io.ReaderAt
	from     uint64 // address at which memory begins
	mapped   []mapping
	program  string                      // the file of the executable
	programs map[string]*symbols.Program // by file; nil where it cannot be read
}

// A mapping is a part of a file in the memory of the process.
type mapping struct {
	lo, hi, offset uint64
	file           string
}

// Bounds of the output, as in frames.py.
const (
	mostFrames = 30
	mostWalked = 16
)

// Walk is the work of a process of its own for Frames, with WalkFlag and a process id, and for
// CrashFrames, with a record as standard input, because Walk reads much debugging information, and
// the kernel allows only one thread to inspect another process.
func Walk(pid string) int {
	if pid == "" {
		record, _ := io.ReadAll(os.Stdin) // crashed looks at the length
		stdio.Stdout.WriteString(crashed(record))
		return 0
	}
	n, err := strconv.Atoi(pid)
	if err != nil {
		return program.CannotStart
	}
	stdio.Stdout.WriteString(walk(n))
	return 0
}

// walk returns the stacks of the program's threads, "" if no frame is the program's.
func walk(pid int) string {
	w := &walker{dir: dirOf(pid), root: dirOf(pid) + "root", programs: map[string]*symbols.Program{}}
	memory, err := os.Open(w.dir + "mem")
	if err != nil {
		return ""
	}
	defer memory.Close()
	w.memory = memory
	w.program, _ = os.Readlink(w.dir + "exe")
	maps, _ := os.ReadFile(w.dir + "maps")
	w.readMappings(string(maps))
	entries := w.entries()
	var b strings.Builder
	tasks, _ := os.ReadDir(w.dir + "task")
	shown := 0
	for _, t := range tasks {
		tid, _ := strconv.Atoi(t.Name())
		if lines := w.thread(tid, entries[tid]); len(lines) > 0 && shown < mostWalked {
			fmt.Fprintf(&b, "thread %d:\n  %s\n", tid, strings.Join(lines, "\n  "))
			shown++
		}
	}
	for _, p := range w.programs {
		if p != nil {
			p.Close()
		}
	}
	return b.String()
}

func (w *walker) readMappings(maps string) {
	for line := range strings.Lines(maps) {
		fields := strings.Fields(line)
		if len(fields) < 6 || !strings.HasPrefix(fields[5], "/") {
			continue
		}
		var m mapping
		if _, err := fmt.Sscanf(fields[0]+" "+fields[2], "%x-%x %x", &m.lo, &m.hi, &m.offset); err == nil {
			m.file = strings.Join(fields[5:], " ")
			w.mapped = append(w.mapped, m)
		}
	}
}

// find returns the file of an address, and the offset from the file's beginning in memory.
func (w *walker) find(at uint64) (p *symbols.Program, file string, offset uint64) {
	i := slices.IndexFunc(w.mapped, func(m mapping) bool { return at >= m.lo && at < m.hi })
	if i < 0 {
		return nil, "", 0
	}
	file = w.mapped[i].file
	return w.open(file), file, at - w.begin(file)
}

func (w *walker) begin(file string) uint64 {
	i := slices.IndexFunc(w.mapped, func(m mapping) bool { return m.file == file })
	return w.mapped[i].lo - w.mapped[i].offset
}

// open returns nil for a file that is no program.
func (w *walker) open(file string) *symbols.Program {
	p, known := w.programs[file]
	if !known {
		p, _ = symbols.Open(w.root + file)
		w.programs[file] = p
	}
	return p
}

func (w *walker) word(at uint64) (uint64, bool) {
	var word [8]byte
	_, err := w.memory.ReadAt(word[:], int64(at-w.from))
	return binary.LittleEndian.Uint64(word[:]), err == nil
}

// entries returns the frames from which threads have entered Go, by thread.
func (w *walker) entries() map[int]uint64 {
	const most = 256
	found := map[int]uint64{}
	for _, m := range w.mapped {
		if !isFace(m.file) || m.offset != 0 {
			continue
		}
		p := w.open(m.file)
		if p == nil {
			continue
		}
		at, ok := p.Variable("gompi_entries")
		for i := uint64(0); ok && i < most; i++ {
			thread, _ := w.word(m.lo + at + 16*i)
			frame, _ := w.word(m.lo + at + 16*i + 8)
			if thread != 0 && frame != 0 {
				found[int(thread)] = frame
			}
		}
	}
	return found
}

// isFace reports whether a file is a library for MPI, perhaps gompi's.
func isFace(file string) bool { return strings.HasPrefix(filepath.Base(file), "libmpi") }

// isGompi reports whether a file is gompi's, whose frames are left out.
func isGompi(file string) bool {
	return slices.Contains([]string{"libgompi-mpi.so", "libgompi-core.so", "libgompi.so"}, filepath.Base(file))
}

// thread returns the frames of a thread, innermost first; none if no frame is the program's.
func (w *walker) thread(tid int, entry uint64) []string {
	r, ok := reported(w.dir, tid)
	if _, file, _ := w.find(r.Value[symbols.PC]); ok && isGompi(file) {
		if entry == 0 {
			return nil // a thread of gompi itself
		}
		r = w.entered(entry)
	}
	if ok {
		if lines, lacks := w.frames(r); !lacks {
			return lines
		}
	}
	if r, ok = stopped(tid); !ok {
		return nil
	}
	if _, file, _ := w.find(r.Value[symbols.PC]); isGompi(file) && entry != 0 {
		r = w.entered(entry)
	}
	lines, _ := w.frames(r)
	return lines
}

// frames returns the frames from r on. lacks reports that a missing register ends them early.
func (w *walker) frames(r symbols.Registers) (lines []string, lacks bool) {
	ofProgram := false
	for range mostFrames {
		p, file, offset := w.find(r.Value[symbols.PC])
		if p == nil {
			break
		}
		name := p.Function(offset)
		if !isGompi(file) {
			lines = append(lines, describeFrame(p, name, file, offset, file == w.program))
		}
		ofProgram = ofProgram || file == w.program && name != ""
		if file == w.program && name == "main" {
			break
		}
		var ok bool
		if ok, lacks = p.Unwind(offset-1, &r, w.word); !ok {
			break
		}
	}
	if !ofProgram {
		return nil, lacks
	}
	return lines, lacks
}

// stopped stops a thread, returns its registers, and lets the thread continue. A system call of
// the thread continues, too.
func stopped(tid int) (r symbols.Registers, ok bool) {
	runtime.LockOSThread() // the kernel knows the tracer by its thread
	defer runtime.UnlockOSThread()
	if unix.PtraceSeize(tid) != nil {
		return r, false
	}
	defer unix.PtraceDetach(tid)
	if unix.PtraceInterrupt(tid) != nil {
		return r, false
	}
	var ws unix.WaitStatus
	for {
		if _, err := unix.Wait4(tid, &ws, unix.WALL, nil); err == nil && ws.Stopped() {
			break
		} else if err != unix.EINTR {
			return r, false
		}
	}
	var regs unix.PtraceRegs
	if unix.PtraceGetRegs(tid, &regs) != nil {
		return r, false
	}
	for n, v := range []uint64{regs.Rax, regs.Rdx, regs.Rcx, regs.Rbx, regs.Rsi, regs.Rdi, regs.Rbp, regs.Rsp,
		regs.R8, regs.R9, regs.R10, regs.R11, regs.R12, regs.R13, regs.R14, regs.R15, regs.Rip} {
		r.Set(n, v)
	}
	return r, true
}

// reported returns the kernel's registers of a blocked thread of the process in a folder.
func reported(dir string, tid int) (r symbols.Registers, ok bool) {
	text, _ := os.ReadFile(fmt.Sprintf("%stask/%d/syscall", dir, tid))
	fields := strings.Fields(string(text)) // "running", or ends with the stack and the place
	if len(fields) < 3 {
		return r, false
	}
	for i, n := range []int{symbols.StackPointer, symbols.PC} {
		v, err := strconv.ParseUint(fields[len(fields)-2+i], 0, 64)
		if err != nil {
			return r, false
		}
		r.Set(n, v)
	}
	return r, true
}

// entered returns the registers of the caller of the function that entered Go, which has a frame
// pointer.
func (w *walker) entered(frame uint64) (r symbols.Registers) {
	saved, _ := w.word(frame)
	back, _ := w.word(frame + 8)
	r.Set(symbols.FramePointer, saved)
	r.Set(symbols.PC, back)
	r.Set(symbols.StackPointer, frame+16)
	return r
}

func describeFrame(p *symbols.Program, name, file string, offset uint64, program bool) string {
	if name == "" {
		name = "??"
	}
	switch line := p.Line(offset); {
	case line != "":
		return fmt.Sprintf("%s() at %s", name, line)
	case program:
		return name + "()"
	}
	return fmt.Sprintf("%s() in %s", name, filepath.Base(file))
}
