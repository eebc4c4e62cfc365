package files

import (
	"strings"

	"gompi/internal/core/layout"
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/dtypes"
	"gompi/mpi/internal/errs"
	"gompi/mpi/internal/infos"
	"gompi/mpi/internal/typemap"
)

// A view defines which bytes of a file are its data, in which order: the data of consecutive
// filetypes from disp on. Positions in a view are counted in bytes of data. Views are immutable.
type view struct {
	disp            int
	etype, filetype *typemap.Type
	rep             representation
	unit            int             // bytes of an etype in the file
	tile            []layout.Layout // of a filetype in the file, a single element
	extent          int             // how far apart filetypes are there
	run             int             // bytes of a run, on average; noRun if an exchange is impossible
}

// noRun is longer than any short run: the data is a single run, or is not in the order of the
// file.
const noRun = 1 << 62

// A representation is how data is in a file.
type representation int

const (
	native representation = iota
	internal
	external32
)

var representations = []string{"native", "internal", "external32"}

// bytesFrom returns the view of a file that was opened.
func bytesFrom(disp int) *view {
	bytes := typemap.Named("MPI_BYTE")
	v, err := newView(disp, bytes, bytes, native)
	if err != nil {
		panic(err) // which a test would find
	}
	return v
}

func newView(disp int, etype, filetype *typemap.Type, rep representation) (*view, error) {
	v := &view{disp: disp, etype: etype, filetype: filetype, rep: rep, unit: etype.Size()}
	size := filetype.Size()
	v.tile, v.extent = []layout.Layout{filetype.Layout(1)}, filetype.Extent()
	if rep == external32 {
		v.unit, size = etype.ExternalSize(1), filetype.ExternalSize(1)
		if _, ok := filetype.Contiguous(2); ok && size > 0 {
			v.tile, v.extent = []layout.Layout{layout.Run(size)}, size
		} else if size != filetype.Size() {
			return nil, errs.New(errs.Datarep, "the filetype has gaps and elements of other sizes than in external32: want one without")
		}
	}
	switch {
	case v.unit <= 0:
		return nil, errs.New(errs.Type, "the etype has no data")
	case size%v.unit != 0:
		return nil, errs.New(errs.Arg, "the filetype has %d bytes: want a multiple of the etype's %d", size, v.unit)
	}
	v.run = v.averageRun()
	return v, nil
}

func (v *view) averageRun() int {
	l := &v.tile[0]
	lo, hi := l.Bounds()
	ascending, disjoint := l.Order()
	if _, one := l.Contiguous(); v.rep == external32 || !ascending || !disjoint || hi-lo > v.extent ||
		one && l.Size() == v.extent {
		return noRun
	}
	runs := 0
	l.Loops(0, l.Size(), func(_, _, count, _ int) bool {
		runs += count
		return true
	})
	return max(1, l.Size()/max(1, runs))
}

// trains calls do for n bytes of data from position at on.
func (v *view) trains(at, n int, do func(train)) {
	if n <= 0 {
		return
	}
	var t train
	l := layout.Around(v.tile, (at+n-1)/v.size()+1, v.extent)
	l.Loops(at, n, func(off, n, count, stride int) bool {
		off += v.disp
		if count == 1 && n == t.n && (t.count == 1 || off == t.off+t.count*t.stride) {
			t.stride = (off - t.off) / t.count
			t.count++
			return true
		}
		if t.count > 0 {
			do(t)
		}
		t = train{off, n, count, stride}
		return true
	})
	do(t)
}

// size returns the bytes of data in a tile.
func (v *view) size() int { return v.tile[0].Size() }

// runs calls do for the runs of n bytes of data from position at on, with each run's place in the
// file and its bytes. Runs that touch are merged. runs ends when do returns false.
func (v *view) runs(at, n int, do func(off, n int) bool) {
	if n <= 0 {
		return
	}
	l := layout.Around(v.tile, (at+n-1)/v.size()+1, v.extent)
	start, length := 0, 0
	more := l.Part(at, n, func(off, n int) bool {
		if length > 0 && off == start+length {
			length += n
			return true
		}
		if length > 0 && !do(v.disp+start, length) {
			return false
		}
		start, length = off, n
		return true
	})
	if more {
		do(v.disp+start, length)
	}
}

// offset returns the file offset of the data byte at a position of the view.
func (v *view) offset(at int) (off int) {
	off = v.disp
	if v.size() > 0 {
		v.runs(at, 1, func(o, _ int) bool {
			off = o
			return true
		})
	}
	return off
}

// end returns the position of the first etype after the end of a file of a given size in bytes.
func (v *view) end(bytes int) int {
	left := bytes - v.disp
	if left <= 0 || v.size() == 0 {
		return 0
	}
	lo, hi := v.tile[0].Bounds()
	whole := 0
	if v.extent > 0 {
		whole = max(0, (left-hi+v.extent)/v.extent)
	}
	at := whole * v.size()
	for k := whole; k*v.extent+lo < left; k++ {
		v.tile[0].Part(0, v.size(), func(off, n int) bool {
			at += max(0, min(n, left-k*v.extent-off))
			return true
		})
		if v.extent <= 0 {
			break
		}
	}
	return (at + v.unit - 1) / v.unit * v.unit
}

// ---- MPI's functions ----

// current is MPI_DISPLACEMENT_CURRENT.
const current = -1

// FileSetView is collective, and sets both pointers to the beginning of the view.
func FileSetView(f *File, disp int, etype, filetype *dtypes.Datatype, datarep abi.Text, info *infos.Info) error {
	v, err := f.viewOf(disp, etype, filetype, datarep.String())
	same := []int{0, 0, 0}
	if err == nil {
		same = []int{int(v.rep), v.unit, min(disp, 0)}
	}
	mine := []int64{f.shared.used(), 0}
	if err == nil && v.run <= shortRun {
		mine[1] = 1
	}
	t := f.all("MPI_File_set_view")
	all, err := t.gather(err, same, mine)
	if err != nil {
		return err
	}
	used, scattered := false, false
	for i := 0; i < len(all); i += 2 {
		used, scattered = used || all[i] != 0, scattered || all[i+1] != 0
	}
	f.mu.Lock()
	old := f.view
	f.mu.Unlock()
	if used || disp == current {
		reply := make([]int64, 1)
		if err := t.first(reply, func() error { return f.resetShared(old, reply) }); err != nil {
			return err
		}
		if disp == current {
			v.disp = int(reply[0])
		}
	}
	f.shared.start = 0
	f.hint(info)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.view, f.at, f.scattered = v, 0, scattered
	return nil
}

// resetShared sets the shared pointer to 0, and replies its old place in the file.
func (f *File) resetShared(old *view, reply []int64) error {
	at, err := f.shared.update(f.name, func(int) int { return 0 })
	reply[0] = int64(old.offset(at))
	return err
}

// viewOf returns the view with these arguments, whose disp may be current.
func (f *File) viewOf(disp int, etype, filetype *dtypes.Datatype, datarep string) (*view, error) {
	rep := native
	for rep < representation(len(representations)) && representations[rep] != strings.TrimSpace(datarep) {
		rep++
	}
	switch {
	case rep == representation(len(representations)):
		return nil, errs.New(errs.Datarep, "there is no data representation %q: want native, internal or external32", datarep)
	case disp == current && !f.mode.has(sequential):
		return nil, errs.New(errs.Arg, "the displacement is MPI_DISPLACEMENT_CURRENT: want a file with MPI_MODE_SEQUENTIAL")
	case disp < current || disp != current && f.mode.has(sequential):
		return nil, errs.New(errs.Arg, "the displacement is %d: want 0 or more, and MPI_DISPLACEMENT_CURRENT with MPI_MODE_SEQUENTIAL", disp)
	}
	for _, t := range []*dtypes.Datatype{etype, filetype} {
		if err := dtypes.Check(0, t); err != nil {
			return nil, err
		}
		if err := f.checkOrder(t.Type); err != nil {
			return nil, err
		}
	}
	return newView(disp, etype.Type, filetype.Type, rep)
}

// checkOrder returns an error if the data of t does not follow each other in the file.
func (f *File) checkOrder(t *typemap.Type) error {
	l := t.Layout(1)
	first, _ := l.Bounds()
	ascending, disjoint := l.Order()
	switch {
	case first < 0 || !ascending:
		return errs.New(errs.IO, "a datatype of the view has displacements that are negative, or less than those before them")
	case !disjoint && !f.mode.has(readOnly):
		return errs.New(errs.IO, "a datatype of the view has data that overlaps: want a file with MPI_MODE_RDONLY")
	}
	return nil
}

// FileGetView gives types that are not predefined new handles, which the program frees.
func FileGetView(f *File, datarep abi.Text) (disp int, etype, filetype *dtypes.Datatype, err error) {
	v, _ := f.now()
	datarep.Set(representations[v.rep], maxDatarep)
	if etype, err = dtypes.HandleOf(v.etype); err == nil {
		filetype, err = dtypes.HandleOf(v.filetype)
	}
	return v.disp, etype, filetype, err
}

const maxDatarep = 128 // MPI_MAX_DATAREP_STRING, of all

// now returns the view and the individual pointer.
func (f *File) now() (v *view, at int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.view, f.at
}

// FileGetTypeExtent returns the extent that a datatype has in the file.
func FileGetTypeExtent(f *File, t *dtypes.Datatype) (int, error) {
	if err := t.Check(); err != nil {
		return 0, err
	}
	if v, _ := f.now(); v.rep == external32 {
		if _, ok := t.Contiguous(2); ok {
			return t.ExternalSize(1), nil
		}
	}
	return t.Extent(), nil
}

// RegisterDatarep has no data converted by functions of the program.
func RegisterDatarep(datarep abi.Text, readFn, writeFn, extentFn, extraState abi.Addr) error {
	return errs.New(errs.Unsupported, "there are no data representations but native, internal and external32")
}
