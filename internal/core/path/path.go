// Package path chooses the Path of a collective: through shared memory, hierarchically, by
// messages, or by NCCL on GPUs; the algorithm, and the bytes of a chunk. The package sends nothing
// and reads no clock. All thresholds between Paths are here.
//
// Each communicator has a Selector, made from facts that all its ranks know alike: which of them
// share a host, whether ranks outnumber processors, and the user's tuning. Ranks whose calls are
// equal get equal Paths, without a message. Some facts only the rank itself knows, such as where
// its buffers lie. A Path that depends on such a fact names the Question that the ranks ask each
// other, and the Path Otherwise that they take if a rank answers no. Package exec asks about
// devices, and Resolve applies the answers. Packages shmcoll (questions.go) and hier ask the other
// Questions. None of them chooses.
//
// To find why a call takes its Path, read in this order: For looks up a row; choose, in choose.go,
// makes the row; thresholds.go has the lengths and the measurements behind them;
// testdata/paths.golden shows the result for some topologies.
package path

import (
	"fmt"
	"strings"
)

// Via is the carrier of a collective's data.
type Via uint8

const (
	Messages Via = iota // among all ranks
	Shm                 // memory that all ranks share
	Hier                // shared memory inside hosts, messages between them
	NCCL                // NVIDIA's library, on a device of each rank
	Staged              // chunks of pinned host memory, each of which goes as a call in host memory does
)

var viaNames = [...]string{"messages", "shm", "hier", "nccl", "staged"}

func (v Via) String() string { return viaNames[v] }

// An Algorithm is one of some Via. Over messages a name may mean another one for each collective.
type Algorithm uint8

// Algorithms over messages are described in catalogue.go.
const (
	None Algorithm = iota
	Dissemination
	Binomial
	ScatterAllgather
	Chain
	Halving
	RecursiveDoubling
	Direct
	Circulant
	Ring
	Cubes
	Bruck
	Linear
	Pairwise

	// Through shared memory.
	OneStep    // each rank stores its data once, and the ranks that need the data read it
	Pipelined  // the same in chunks, around a buffer
	Rsag       // reduce-scatter, then allgather, in chunks around a buffer
	SingleCopy // ranks read and write each other's vectors where they lie
	ByElement  // elements are gathered whole, by collectives of bytes, where they are combined

	// Between hosts.
	Leader      // one rank of each host exchanges messages for the host
	MultiLeader // each rank does a share, with the ranks of its number on other hosts

	NumAlgorithms
)

var algorithmNames = [NumAlgorithms]string{"", "dissemination", "binomial", "scatter", "chain", "halving", "rdouble",
	"direct", "circulant", "ring", "cubes", "bruck", "linear", "pairwise",
	"one-step", "pipelined", "rsag", "single-copy", "by-element", "leader", "multi-leader"}

func (a Algorithm) String() string { return algorithmNames[a] }

// A Question is a fact that the ranks ask each other before they follow a Path.
type Question uint8

const (
	Nothing      Question = iota
	SharedHeap            // is every vector in memory from Alloc? (Hier: of the host's ranks)
	LargeBuffers          // is there memory for large buffers? Asked once
	CrossMemory           // does the kernel let the ranks reach each other's memory? Then Kernel says more
	BlockLengths          // how long is the longest block? Then Sized returns the Path
	AnyOnDevice           // is a buffer on a device?
	OwnDevices            // are the buffers of each rank on a device that is no other's?
)

var conditions = [...]string{"", "if all vectors are from Alloc", "if there is memory for large buffers",
	"if the kernel allows it",
	"when the lengths of all blocks are known",
	"if some buffer is on a device", "if each rank's buffers are on a device of its own"}

// OfDevices reports whether q asks where the ranks' buffers lie.
func (q Question) OfDevices() bool { return q >= AnyOnDevice }

// A Chunk specifies how many bytes of a vector go at a time: one of Parts equal parts, but at
// least Least and at most Most bytes. Large chunks go through the large buffers.
type Chunk struct {
	Parts, Least, Most int
	Large              bool
}

// Of returns the bytes of a chunk of n, if so many chunks go at a time.
func (p Chunk) Of(n, at int) int {
	most := p.Most / at
	if p.Parts > 0 {
		return min(max(n/p.Parts, p.Least), most)
	}
	return min(n, most)
}

// A KernelCopy says, where the kernel can copy from rank to rank, whether calls go through the
// kernel or take the Path Otherwise. No other choice is made after For: the faster Path depends
// on the cores that the ranks run on, and a Trial times both now and then.
type KernelCopy struct {
	First bool // calls go through the kernel at first
	Tries bool // trials may change that
}

// A Path is how a call moves its data. Paths are immutable.
type Path struct {
	Via       Via
	Algorithm Algorithm
	Hosts     Algorithm // Hier: how a long vector goes between hosts, Chain; None: as is best for its chunks
	Chunk     Chunk     // zero: all at a time
	Ask       Question
	Kernel    KernelCopy // of CrossMemory
	Otherwise *Path      // where the answer is no
}

// Where holds the answers to the Questions about devices.
type Where struct {
	Own, Any bool // OwnDevices, AnyOnDevice
}

// Resolve returns the Path that is taken after questions about devices.
func (p *Path) Resolve(w Where) *Path {
	for p.Ask == OwnDevices && !w.Own || p.Ask == AnyOnDevice && !w.Any {
		p = p.Otherwise
	}
	return p
}

// OnHost returns the Path for buffers in host memory: p, or a Path behind it.
func (p *Path) OnHost() *Path {
	for p.Ask.OfDevices() {
		p = p.Otherwise
	}
	return p
}

// String describes p: "shm: rsag in 8 KiB to 256 KiB if there is memory for large buffers, else
// shm: rsag in 8 KiB".
func (p *Path) String() string {
	var b strings.Builder
	b.WriteString(p.Via.String())
	if p.Algorithm != None {
		fmt.Fprintf(&b, ": %v", p.Algorithm)
	}
	if p.Hosts != None {
		fmt.Fprintf(&b, ", %v between hosts", p.Hosts)
	}
	if p.Chunk.Parts > 0 {
		fmt.Fprintf(&b, " in %s to %s", bytes(p.Chunk.Least), bytes(p.Chunk.Most))
	} else if p.Chunk.Most > 0 {
		fmt.Fprintf(&b, " in %s", bytes(p.Chunk.Most))
	}
	if p.Ask != Nothing {
		fmt.Fprintf(&b, " %s", conditions[p.Ask])
	}
	switch p.Kernel {
	case KernelCopy{Tries: true}:
		b.WriteString(" and trials find it faster")
	case KernelCopy{First: true, Tries: true}:
		b.WriteString(" until trials find it slower")
	}
	if p.Otherwise != nil {
		fmt.Fprintf(&b, ", else %v", p.Otherwise)
	}
	return b.String()
}

// bytes returns n with its unit.
func bytes(n int) string {
	for _, unit := range []string{"B", "KiB", "MiB"} {
		if n%1024 != 0 || n == 0 {
			return fmt.Sprintf("%d %s", n, unit)
		}
		n /= 1024
	}
	return fmt.Sprintf("%d GiB", n)
}

// equal reports whether two Paths are the same way.
func equal(p, q *Path) bool {
	for ; p != nil && q != nil; p, q = p.Otherwise, q.Otherwise {
		x, y := *p, *q
		if x.Otherwise, y.Otherwise = nil, nil; x != y {
			return false
		}
	}
	return p == q
}
