package coll

import (
	"testing"

	"gompi/internal/core/call"
	"gompi/internal/core/path"
	"gompi/internal/mem"
)

// idle is a Peers that does nothing.
type idle struct{ rank, size int }

func (p idle) Rank() int                                            { return p.rank }
func (p idle) Size() int                                            { return p.size }
func (idle) Isend(int, mem.Buffer)                                  {}
func (idle) Irecv(int, mem.Buffer)                                  {}
func (idle) IrecvReduce(int, mem.Buffer, mem.Buffer, call.Op, bool) {}
func (idle) Wait() error                                            { return nil }
func (idle) Scratch(like mem.Buffer, n int) mem.Buffer              { return like.Slice(0, min(n, like.Len())) }

func TestSmallCallsTakeNoMemory(t *testing.T) {
	buf, all := alloc(mem.F32, 2), alloc(mem.F32, 12)
	for _, p := range []Peers{&idle{1, 2}, &idle{2, 6}} {
		calls := map[string]func() error{
			"barrier": func() error { return Barrier(p, path.Dissemination) },
			"bcast":   func() error { return Bcast(p, path.Binomial, 0, buf) },
			"reduce":  func() error { return Reduce(p, path.Binomial, 0, buf, buf, call.Op{Kind: mem.Sum}) },
			"allreduce": func() error {
				return Allreduce(p, path.RecursiveDoubling, buf, buf, call.Op{Kind: mem.Sum})
			},
			"reducescatter": func() error {
				return ReduceScatterBlock(p, path.Circulant, all, buf, call.Op{Kind: mem.Sum})
			},
			"allgather": func() error { return Allgather(p, path.Circulant, buf, all.Slice(0, 2*p.Size())) },
			"scan":      func() error { return Scan(p, path.RecursiveDoubling, buf, buf, call.Op{Kind: mem.Sum}) },
		}
		for name, call := range calls {
			if n := testing.AllocsPerRun(20, func() {
				if err := call(); err != nil {
					t.Fatal(err)
				}
			}); n != 0 {
				t.Errorf("%s on %d ranks allocates %v times, want 0", name, p.Size(), n)
			}
		}
	}
}

func BenchmarkAllreduceOverhead(b *testing.B) {
	buf, out := alloc(mem.F32, 2), alloc(mem.F32, 2)
	p := Peers(&idle{1, 2})
	b.ReportAllocs()
	for b.Loop() {
		if err := Allreduce(p, path.RecursiveDoubling, buf, out, call.Op{Kind: mem.Sum}); err != nil {
			b.Fatal(err)
		}
	}
}
