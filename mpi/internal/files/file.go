package files

import (
	"context"
	"sync"

	"gompi/internal/core"
	"gompi/internal/core/call"
	"gompi/internal/mem"
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/comms"
	"gompi/mpi/internal/errs"
	"gompi/mpi/internal/infos"
)

var Registry = abi.NewRegistry(abi.FileNull, func(f *File) abi.Handle { return f.Handle })

// A File is an open file with a handle.
type File struct {
	Handle abi.Handle
	c      *core.Comm // of the ranks that have opened the file
	name   string
	mode   mode
	fd     int
	under  sync.WaitGroup // operations under way
	shared sharedPointer
	errs.Holder
	locks sync.Mutex // held by an atomic access: locks are the descriptor's, not a thread's

	mu     sync.Mutex // guards the following
	view   *view
	at     int // the individual pointer: bytes of data in the view
	atomic bool
	// Some rank's view has short runs: collective accesses may be exchanges.
	scattered bool
	split     *pending // the split collective under way
	info      []string // keys, each followed by its value
}

// Null is MPI_FILE_NULL, which has the error handler of functions without a file, and of files that
// are opened.
var Null = &File{Handle: abi.FileNull, Holder: errs.Holder{Handler: errs.ErrorsReturn}}

func init() { Registry.Set(Null.Handle, Null) }

// Check returns an error if f is no open file.
func (f *File) Check() error {
	if f == Null {
		return errs.New(errs.File, "the file is MPI_FILE_NULL")
	}
	return checkOrNull(f)
}

func checkOrNull(f *File) error {
	if f == nil {
		return errs.New(errs.File, "the file is not valid")
	}
	return nil
}

// ---- Errors ----

// Raise calls the error handler of f, or of MPI_FILE_NULL if f is nil, and returns the class.
func (f *File) Raise(name string, err error) abi.Class {
	if f == nil {
		f = Null
	}
	errs.Note(name, f.text(), err)
	comms.CallHandler(f.Errhandler(), errs.KindFile, f.Handle, f.text(), name, err)
	return errs.ClassOf(err)
}

// text returns the name of f in messages.
func (f *File) text() string {
	if f == Null {
		return "MPI_FILE_NULL"
	}
	return "the file " + f.name
}

func FileSetErrhandler(f *File, h *errs.Errhandler) error {
	if err := checkOrNull(f); err != nil {
		return err
	}
	return f.SetErrhandler(errs.KindFile, h)
}

func FileGetErrhandler(f *File) (*errs.Errhandler, error) {
	if err := checkOrNull(f); err != nil {
		return nil, err
	}
	return f.GetErrhandler()
}

func FileCallErrhandler(f *File, code int) error {
	if err := checkOrNull(f); err != nil {
		return err
	}
	comms.CallHandler(f.Errhandler(), errs.KindFile, f.Handle, f.text(), "MPI_File_call_errhandler",
		comms.CalledByProgram(code))
	return nil
}

// ---- Properties of a file ----

func FileGetGroup(f *File) (*comms.Group, error) {
	return comms.CommGroup(&comms.Comm{P2P: f.c})
}

func FileGetAmode(f *File) (int, error) {
	return int(f.mode), nil
}

// FileSetInfo keeps hints, so that FileGetInfo returns them. None is heeded.
func FileSetInfo(f *File, info *infos.Info) error {
	err := f.all("MPI_File_set_info").agree(nil)
	if err == nil {
		f.hint(info)
	}
	return err
}

// hint adds hints to the hints of f.
func (f *File) hint(info *infos.Info) {
	if info == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.info = append(f.info, info.Pairs()...)
}

func FileGetInfo(f *File) (*infos.Info, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return infos.New(f.info...), nil
}

// ---- Agreement ----

// A team is the ranks that have opened a file, in a function of MPI.
type team struct {
	c  *core.Comm
	in context.Context
}

// all returns the ranks of f, which have called a function of MPI.
func (f *File) all(function string) team { return team{f.c, comms.In(function)} }

// agree is called by all ranks, each with its error, or nil, and the values that must be equal on
// all ranks. The result is an error on all if any rank has an error, or if something differs: a
// rank's own error, or the class of the first rank's error.
func (t team) agree(err error, same ...int) error {
	_, err = t.gather(err, same, nil)
	return err
}

// gather is agree that also returns the numbers that each rank gives, by rank.
func (t team) gather(err error, same []int, mine []int64) (numbers []int64, _ error) {
	record := []int64{int64(errs.ClassOf(err))}
	for _, x := range same {
		record = append(record, int64(x))
	}
	record = append(record, mine...)
	n := len(record)
	all := make([]int64, n*t.c.Size())
	if e := t.c.Do(t.in, new(call.Call).Allgather(mem.Of(record), mem.Of(all))); e != nil {
		return nil, e
	}
	if err != nil {
		return nil, err
	}
	for r := range t.c.Size() {
		theirs := all[r*n:][:n]
		if theirs[0] != 0 {
			return nil, errs.New(abi.Class(theirs[0]), "it has failed on rank %d", r)
		}
	}
	for r := range t.c.Size() {
		for i := range same {
			if all[r*n+1+i] != all[1+i] {
				return nil, errs.New(errs.NotSame, "rank %d has given other arguments than rank 0", r)
			}
		}
		numbers = append(numbers, all[r*n+1+len(same):][:len(mine)]...)
	}
	return numbers, nil
}

// first has rank 0 do the work of all ranks, and returns its error on all. reply is set by do for
// all.
func (t team) first(reply []int64, do func() error) error {
	var err error
	record := make([]int64, 1+len(reply))
	if t.c.Rank() == 0 {
		err = do()
		record[0] = int64(errs.ClassOf(err))
		copy(record[1:], reply)
	}
	if e := t.c.Do(t.in, new(call.Call).Bcast(0, mem.Of(record))); e != nil {
		return e
	}
	copy(reply, record[1:])
	if err == nil && record[0] != 0 {
		err = errs.New(abi.Class(record[0]), "it has failed on rank 0")
	}
	return err
}
