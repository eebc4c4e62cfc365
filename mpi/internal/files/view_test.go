package files

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"gompi/mpi/internal/dtypes"
	"gompi/mpi/internal/typemap"
)

// someType returns a datatype whose bytes follow each other, with gaps, and where they are.
func someType(t *testing.T, r *rand.Rand) (*typemap.Type, []int) {
	t.Helper()
	var lengths, at, model []int
	end := r.IntN(3)
	for range 1 + r.IntN(5) {
		n := 1 + r.IntN(4)
		lengths, at = append(lengths, n), append(at, end)
		for i := range n {
			model = append(model, end+i)
		}
		end += n + r.IntN(3)
	}
	blocks, err := typemap.Hindexed(lengths, at, typemap.Named("MPI_BYTE"))
	if err != nil {
		t.Fatal(err)
	}
	whole, err := typemap.Resized(blocks, 0, end+r.IntN(4))
	if err != nil {
		t.Fatal(err)
	}
	return whole, model
}

// A place of data in a file, or a memory, of elements one behind the other.
func (m model) place(i int) int { return m.disp + i/len(m.tile)*m.extent + m.tile[i%len(m.tile)] }

// A model is a view byte by byte.
type model struct {
	disp, extent int
	tile         []int
}

// The runs, the offsets and the end of a view are those of its bytes, one by one.
func TestViewsAreTheirBytes(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 2))
		filetype, tile := someType(t, r)
		m := model{r.IntN(10), filetype.Extent(), tile}
		v, err := newView(m.disp, typemap.Named("MPI_BYTE"), filetype, native)
		if err != nil {
			t.Fatal(err)
		}
		at, n := r.IntN(3*len(tile)), 1+r.IntN(3*len(tile))
		var got, want []int
		last := -1
		v.runs(at, n, func(off, n int) bool {
			if off == last {
				t.Errorf("seed %d: a run begins at %d, where the one before ends", seed, off)
			}
			last = off + n
			for i := range n {
				got = append(got, off+i)
			}
			return true
		})
		for i := range n {
			want = append(want, m.place(at+i))
		}
		if !slices.Equal(got, want) || v.offset(at) != want[0] {
			t.Fatalf("seed %d: the bytes from %d on are at %v (the first at %d), want %v", seed, at, got,
				v.offset(at), want)
		}
		size, end := r.IntN(60), 0
		for m.place(end) < size {
			end++
		}
		if got := v.end(size); got != end {
			t.Fatalf("seed %d: a file of %d bytes ends at %d, want %d", seed, size, got, end)
		}
	}
}

// What is written from memory with gaps to a file with gaps is there, and read again, as far as the
// file goes.
func TestAccessesMoveTheirBytes(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 3))
		filetype, tile := someType(t, r)
		memory, inMemory := someType(t, r)
		m, k := model{r.IntN(10), filetype.Extent(), tile}, model{0, memory.Extent(), inMemory}
		v, err := newView(m.disp, typemap.Named("MPI_BYTE"), filetype, native)
		if err != nil {
			t.Fatal(err)
		}
		file, err := os.OpenFile(filepath.Join(t.TempDir(), "data"), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		count := 1 + r.IntN(2000)
		n, at := count*memory.Size(), r.IntN(50)
		data := make([]byte, count*memory.Extent()+1)
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		a := access{f: &File{fd: int(file.Fd())}, v: v, write: true, atomic: seed%2 == 0, at: at, n: n,
			buf: addressOf(data), count: count, t: &dtypes.Datatype{Type: memory}}
		if moved, err := a.move(); moved != n || err != nil {
			t.Fatalf("seed %d: %d bytes are written, %v: want %d", seed, moved, err, n)
		}
		stored, err := os.ReadFile(file.Name())
		if err != nil {
			t.Fatal(err)
		}
		want := make([]byte, m.place(at+n-1)+1)
		for i := range n {
			want[m.place(at+i)] = data[k.place(i)]
		}
		if !bytes.Equal(stored, want) {
			t.Fatalf("seed %d: the file is not what was written", seed)
		}
		cut := r.IntN(n + 1) // so many bytes are left
		if err := file.Truncate(int64(m.place(at + cut))); err != nil {
			t.Fatal(err)
		}
		after := bytes.Clone(data)
		clear(data)
		for i := range after {
			if !slices.Contains(inMemory, i%memory.Extent()) || i >= k.place(cut) {
				after[i] = 0
			}
		}
		a.write = false
		if moved, err := a.move(); moved != cut || err != nil || !bytes.Equal(data, after) {
			t.Fatalf("seed %d: of %d bytes %d are read, %v, or others", seed, cut, moved, err)
		}
		runtime.KeepAlive(data)
		file.Close()
	}
}

func TestTheSharedPointerIsOneForAll(t *testing.T) {
	name := filepath.Join(t.TempDir(), "data")
	const users, turns, step = 4, 200, 3
	over := make(chan error)
	seen := make([]int32, users*turns)
	pointers := make([]sharedPointer, users)
	for u := range users { // each has a descriptor of its own, as ranks have
		p := &pointers[u]
		p.number, p.start = 7, 12
		go func() {
			for range turns {
				old, err := p.update(name, func(old int) int { return old + step })
				if err != nil {
					over <- err
					return
				}
				seen[(old-12)/step]++ // nobody else has it
			}
			over <- nil
		}()
	}
	for range users {
		if err := <-over; err != nil {
			t.Fatal(err)
		}
	}
	for i, n := range seen {
		if n != 1 {
			t.Errorf("place %d is given to %d", i, n)
		}
	}
	for u := range users {
		if pointers[u].close() != 1 {
			t.Error("a pointer that was used says that it was not")
		}
	}
	if err := pointers[0].remove(name); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(filepath.Dir(name)); err != nil || len(left) > 0 {
		t.Errorf("%v, %v are left behind", err, left)
	}
}
