package mem

// A Space is a kind of memory: host memory, or the memory of one device. Buffers are in the same
// memory if their Spaces are equal (==). Methods may be called from any goroutine and block until
// the work is done. memtest.Space tests them.
type Space interface {
	// Name names the memory, for error messages: "host", "cuda:0".
	Name() string
	// Alloc returns n elements of type t, zeroed, aligned for vector code.
	Alloc(t Type, n int) (Buffer, error)
	// Free releases a Buffer that Alloc returned.
	Free(Buffer)
	// Copy copies src to dst, of equal byte size. At least one of the two is
	// in this Space, the other may be host memory.
	Copy(dst, src Buffer) error
}

// A Pinner is a Space with host memory that its copies reach directly.
type Pinner interface {
	// AllocHost returns n zeroed elements of host memory, for FreeHost. It is slow: it pins memory.
	AllocHost(t Type, n int) (Buffer, error)
	FreeHost(Buffer) error
}

// A Batcher is a Space that waits once for several copies.
type Batcher interface {
	// CopyAll copies each of srcs to the dst with its number, as Copy does.
	CopyAll(dsts, srcs []Buffer) error
}
