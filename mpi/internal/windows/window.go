package windows

import (
	"errors"
	"slices"
	"sync"

	"gompi/internal/core"
	"gompi/internal/core/rma"
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/attrs"
	"gompi/mpi/internal/comms"
	"gompi/mpi/internal/dtypes"
	"gompi/mpi/internal/errs"
	"gompi/mpi/internal/infos"
)

var Registry = abi.NewRegistry(abi.WinNull, func(w *Win) abi.Handle { return w.Handle })

// A Win is a window with a handle.
type Win struct {
	Handle abi.Handle
	w      *rma.Window
	of     *comms.Comm // the communicator of which the window was made
	base   abi.Addr
	flavor int
	values abi.Addr // in C's memory, of the predefined attributes
	epochs

	attrs.Attributes
	errs.Holder

	mu    sync.Mutex // guards the following
	name  string
	hints []string
}

// Flavors, counted from MPI_WIN_FLAVOR_CREATE.
const (
	flavorCreate = iota
	flavorAllocate
	flavorDynamic
	flavorShared
)

// makers are the functions that make windows, by flavor.
var makers = [...]string{"MPI_Win_create", "MPI_Win_allocate", "MPI_Win_create_dynamic", "MPI_Win_allocate_shared"}

// Check returns an error if w is not valid.
func (w *Win) Check() error {
	if w == nil {
		return errs.New(errs.Win, "the window is not valid")
	}
	return nil
}

// newWin makes a window over c.
func newWin(c *comms.Comm, info *infos.Info, flavor, unit int, cfg rma.Config) (*Win, error) {
	switch {
	case cfg.Size < 0:
		return nil, errs.New(errs.Size, "the size is %d: want 0 or more", cfg.Size)
	case unit <= 0:
		return nil, errs.New(errs.Disp, "the displacement unit is %d: want 1 or more", unit)
	}
	cfg.Unit, cfg.Custom = unit, combination
	ctx := comms.In(makers[flavor])
	own, err := c.P2P.Dup(ctx)
	if err != nil {
		return nil, err
	}
	own.SetName(c.Name() + "/window")
	r, err := rma.New(ctx, own, cfg)
	switch {
	case errors.Is(err, core.ErrArgument):
		return nil, errs.New(errs.RMAShared, "the ranks share no memory")
	case err != nil:
		return nil, err
	}
	w := &Win{w: r, of: c, flavor: flavor, epochs: epochsOf(r.ForC())}
	if base, _, ok := r.Memory(own.Rank()); ok {
		w.base = abi.Addr(base)
	}
	w.keepValues()
	w.setHints(info)
	w.Handle = Registry.Add(w)
	comms.Own(own)
	comms.Lease.Window(int(w.Handle)-abi.FirstHandle, w.Window)
	return w, nil
}

// combination returns the function for packed elements that gompi's kernels do not combine: code
// has the handles of the operator and of the type.
func combination(code uint64) func(acc, in []byte) {
	o, t := dtypes.Ops.Find(abi.Handle(code>>32)), dtypes.Registry.Find(abi.Handle(code&0xffffffff))
	return func(acc, in []byte) { o.CombinePacked(t, acc, in) }
}

func WinCreate(base abi.Addr, size, unit int, info *infos.Info, c *comms.Comm) (*Win, error) {
	return newWin(c, info, flavorCreate, unit, rma.Config{Kind: rma.Created, Base: uintptr(base), Size: size})
}

func WinAllocate(size, unit int, info *infos.Info, c *comms.Comm) (abi.Addr, *Win, error) {
	return allocated(newWin(c, info, flavorAllocate, unit, rma.Config{Kind: rma.Allocated, Size: size}))
}

func WinAllocateShared(size, unit int, info *infos.Info, c *comms.Comm) (abi.Addr, *Win, error) {
	apart, _ := info.Value("alloc_shared_noncontig")
	return allocated(newWin(c, info, flavorShared, unit,
		rma.Config{Kind: rma.Shared, Size: size, Apart: apart == "true"}))
}

func allocated(w *Win, err error) (abi.Addr, *Win, error) {
	if err != nil {
		return 0, nil, err
	}
	return w.base, w, nil
}

// WinSharedQuery returns the first part that has memory for MPI_PROC_NULL.
func WinSharedQuery(w *Win, rank int) (size, unit int, base abi.Addr, err error) {
	if w.flavor != flavorShared && w.flavor != flavorAllocate {
		return 0, 0, 0, errs.New(errs.RMAFlavor, "the window's memory was not allocated with it")
	}
	if rank == abi.ProcNull {
		for rank = 0; rank < w.w.Comm.Size()-1 && w.w.Size(rank) == 0; rank++ {
		}
	}
	if err := w.checkRank(rank); err != nil {
		return 0, 0, 0, err
	}
	at, n, ok := w.w.Memory(rank)
	if !ok {
		return 0, w.w.Unit(rank), 0, nil
	}
	return n, w.w.Unit(rank), abi.Addr(at), nil
}

func WinCreateDynamic(info *infos.Info, c *comms.Comm) (*Win, error) {
	return newWin(c, info, flavorDynamic, 1, rma.Config{Kind: rma.Dynamic})
}

func WinAttach(w *Win, base abi.Addr, size int) error {
	if size < 0 {
		return errs.New(errs.Size, "the size is %d: want 0 or more", size)
	}
	if w.w.Attach(uintptr(base), size, nil) != nil {
		return errs.New(errs.RMAAttach, "the memory is attached already, or some of it")
	}
	return nil
}

func WinDetach(w *Win, base abi.Addr) error {
	if w.w.Detach(uintptr(base)) != nil {
		return errs.New(errs.RMAAttach, "no memory that begins there is attached")
	}
	return nil
}

func (w *Win) CheckDynamic() error {
	if err := w.Check(); err != nil {
		return err
	}
	if w.flavor != flavorDynamic {
		return errs.New(errs.RMAFlavor, "the window is not dynamic")
	}
	return nil
}

func WinFree(h *abi.Handle) error {
	w := Registry.Find(*h)
	if err := w.Check(); err != nil {
		return err
	}
	if err := w.checkIdle(); err != nil {
		return err
	}
	if err := w.DeleteAttributes(attrs.KindWin, w.Handle); err != nil {
		return err
	}
	comms.Lease.FreeWindow(int(*h)-abi.FirstHandle, w.Window)
	comms.Disown(w.w.Comm)
	err := w.w.Free(comms.In("MPI_Win_free"))
	Registry.Remove(*h)
	*h = Registry.Null
	abi.C.Free(w.values)
	return comms.Failed(w, err)
}

func WinGetGroup(w *Win) (*comms.Group, error) {
	return comms.NewGroup(w.w.Comm.Group()), nil
}

// defaultHints are the standard's hints, each followed by its value. Windows note the programs'
// hints, and ignore them, except alloc_shared_noncontig in MPI_Win_allocate_shared.
var defaultHints = []string{
	"no_locks", "false", "accumulate_ordering", "rar,raw,war,waw", "accumulate_ops", "same_op_no_op",
	"same_size", "false", "same_disp_unit", "false", "alloc_shared_noncontig", "false",
}

// setHints notes the hints of the standard in info.
func (w *Win) setHints(info *infos.Info) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.hints == nil {
		w.hints = slices.Clone(defaultHints)
	}
	for i := 0; i < len(w.hints); i += 2 {
		if value, ok := info.Value(w.hints[i]); ok {
			w.hints[i+1] = value
		}
	}
}

func WinSetInfo(w *Win, info *infos.Info) error {
	w.setHints(info)
	return nil
}

func WinGetInfo(w *Win) (*infos.Info, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return infos.New(w.hints...), nil
}

func WinSetName(w *Win, name abi.Text) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.name = name.String()
	return nil
}

func WinGetName(w *Win, name abi.Text) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return name.Set(w.name, abi.C.MaxObjectName), nil
}
