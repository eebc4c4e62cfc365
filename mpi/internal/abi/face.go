package abi

// A Face is the C library that the program calls: some of its constants, and how to call
// functions of the program. Tests have a Face in Go.
type Face struct {
	// in arrays and attributes, which are not converted
	ProcNull, AnySource, Undefined                              int
	BsendOverhead                                               int
	BufferAutomatic                                             Addr
	LastCode                                                    int // MPI_ERR_LASTCODE: added codes follow
	MaxObjectName, MaxErrorString, MaxProcessorName, MaxInfoKey int // with the zero at the end
	MaxInfoValue                                                int
	// MPI_WIN_UNIFIED, MPI_WIN_FLAVOR_CREATE: others follow
	Unified, FlavorCreate                                              int
	DistributeBlock, DistributeCyclic, DistributeNone, DefaultArgument int

	// CallOp calls a program's operator: inout = in op inout, for n elements.
	CallOp func(fn, in, inout Addr, n int, op, datatype Handle)
	// CopyAttr and DeleteAttr call a keyval's functions, and return a class. kind is the object's
	// kind, as package attrs has it.
	CopyAttr func(fn Addr, kind int, object Handle, keyval int, extra, value Addr) (copied Addr, flag bool,
		class Class)
	DeleteAttr func(fn Addr, kind int, object Handle, keyval int, value, extra Addr) Class
	// CallErrhandler calls an error handler of the program, for an object of a kind.
	CallErrhandler func(fn Addr, h Handle, kind int, object Handle, class Class)
	// Query, Release and Cancel call the functions of a generalized request.
	Query   func(fn, extra Addr, s *Status) Class
	Release func(fn, extra Addr) Class
	Cancel  func(fn, extra Addr, complete bool) Class

	// Count counts bytes that a call has moved, at this thread's current call of MPI, and, if
	// peer is not negative, the rank of the job and the tag of a message.
	Count func(bytes, peer, tag int)

	// Alloc and Free are malloc and free: memory that C may keep.
	Alloc func(n int) Addr
	Free  func(Addr)
	// Combine combines types without numbers in Go: inout = in op inout for n elements of a type
	// with long double in it. The result is false without such an operator.
	Combine func(op Handle, datatype Handle, in, inout Addr, n int) bool

	Alone func() error // an error if the process has another MPI library, too
	Flush func()       // C's streams
	Exit  func(status int)
}

var C Face
