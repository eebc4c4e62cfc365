package snapshot

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"math"
	"os"

	"gompi/comm"
	"gompi/comm/ddp"
	"gompi/comm/ddp/sampler"
)

// The format of a snapshot file. All numbers are little-endian, as in the memory of amd64 and
// arm64:
//
//	header
//	BucketOrder (8 bytes for each parameter)
//	for each slice, of Slices, then of Hook.Shared, then of Hook.Own: length of its name (2 bytes),
//	name, length of its type's name (1), type's name, count of numbers (8)
//	the numbers of each slice of Slices and of Hook.Shared, as in memory
//	for each slice of Hook.Own: the numbers of rank 0, of rank 1 and so on
//	CRC-32C of all bytes before (4)
const (
	fileMagic   = "gompi-sn"
	fileVersion = 4
	trailerSize = 4
)

type header struct {
	Magic         [8]byte
	Version       uint32
	Slices        uint32
	Size          int64 // bytes of the whole file
	Step          int64
	Epoch, Offset int64
	Seed          uint64
	Shared, Own   uint32 // slices of the Hook
	Ranks         uint32 // number of ranks in Own; 0 without Own, since then any number saves the same
	Params        uint32 // in BucketOrder
}

var (
	order      = binary.LittleEndian
	headerSize = int64(binary.Size(header{}))
)

// newHeader returns the header of a file of s.
func newHeader(s *State, ranks int) (h header, err error) {
	copy(h.Magic[:], fileMagic)
	h.Version, h.Slices = fileVersion, uint32(len(s.Slices))
	h.Step, h.Epoch, h.Offset, h.Seed = s.Step, s.Position.Epoch, s.Position.Offset, s.Seed
	h.Shared, h.Own = uint32(len(s.Hook.Shared)), uint32(len(s.Hook.Own))
	if h.Own > 0 {
		h.Ranks = uint32(ranks)
	}
	h.Params = uint32(len(s.BucketOrder))
	h.Size = s.fileSize(h)
	for _, slice := range append(s.shared(), s.Hook.Own...) {
		if len(slice.Name) > math.MaxUint16 {
			return h, fmt.Errorf("name of a slice has %d bytes: want at most %d", len(slice.Name), math.MaxUint16)
		}
	}
	return h, nil
}

// fileSize returns the bytes of a file of s with the BucketOrder and the ranks of h.
func (s *State) fileSize(h header) int64 {
	size := headerSize + 8*int64(h.Params) + trailerSize
	for _, slice := range s.shared() {
		size += entrySize(slice) + int64(slice.Data.Size())
	}
	for _, slice := range s.Hook.Own {
		size += entrySize(slice) + int64(slice.Data.Size())*int64(h.Ranks)
	}
	return size
}

// encode writes s to w. For each slice of Hook.Own it calls own once, which returns the numbers of
// all ranks.
func encode(w io.Writer, s *State, ranks int, own func() ([]byte, error)) error {
	head, err := newHeader(s, ranks)
	if err != nil {
		return err
	}
	sum := newSum()
	out := bufio.NewWriterSize(io.MultiWriter(w, sum), 1<<16)
	buf, err := binary.Append(nil, order, head)
	if err != nil {
		return err
	}
	for _, i := range s.BucketOrder {
		buf = order.AppendUint64(buf, uint64(i))
	}
	for _, slice := range append(s.shared(), s.Hook.Own...) {
		buf = appendEntry(buf, slice)
	}
	out.Write(buf) // a bufio.Writer keeps its error for Flush
	for _, slice := range s.shared() {
		if err := writeNumbers(out, slice.Data); err != nil {
			return err
		}
	}
	for range s.Hook.Own {
		all, err := own()
		if err != nil {
			return err
		}
		if _, err := out.Write(all); err != nil {
			return err
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	_, err = w.Write(order.AppendUint32(nil, sum.Sum32()))
	return err
}

func appendEntry(buf []byte, slice ddp.Slice) []byte {
	buf = order.AppendUint16(buf, uint16(len(slice.Name)))
	buf = append(buf, slice.Name...)
	typ := slice.Data.Type().String()
	buf = append(append(buf, byte(len(typ))), typ...)
	return order.AppendUint64(buf, uint64(slice.Data.Len()))
}

// A reader reads a file with a valid checksum.
type reader struct {
	file *os.File
	head header
	in   io.Reader
	fits bool // the Hook's memory in the file matches the State's
}

// close may be called on nil.
func (r *reader) close() {
	if r != nil {
		_ = r.file.Close() // errors do not matter after reads
	}
}

// hookMemory returns how the file's memory of a Hook is used on this many ranks.
func (r *reader) hookMemory(ranks int, s *State) HookMemory {
	saved, want := r.head.Shared+r.head.Own > 0, len(s.Hook.Shared)+len(s.Hook.Own) > 0
	switch {
	case want && !r.fits:
		return Absent
	case saved && !want:
		return Unused
	case !want:
		return NoMemory
	case r.head.Own > 0 && int(r.head.Ranks) != ranks:
		return Averaged
	}
	return Restored
}

// decode reads into s the output of encode except the numbers of Hook.Own. These are then next in
// the reader, if they match. decode reads the file twice: s changes only after the checksum has
// been verified.
func decode(f io.ReadSeeker, s *State) (*reader, error) {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	r := &reader{}
	if r.head, err = readHeader(f, size); err != nil {
		return nil, err
	}
	if err := verify(f, size); err != nil {
		return nil, err
	}
	if _, err := f.Seek(headerSize, io.SeekStart); err != nil {
		return nil, err
	}
	r.in = bufio.NewReaderSize(io.LimitReader(f, size-headerSize-trailerSize), 1<<16)
	bucketOrder, err := r.readOrder()
	if err != nil {
		return nil, err
	}
	if err := r.matchTable(s); err != nil {
		return nil, err
	}
	slices := s.Slices
	if r.fits {
		slices = s.shared()
	}
	for _, slice := range slices {
		if err := readNumbers(r.in, slice.Data); err != nil {
			return nil, err
		}
	}
	h := r.head
	s.Step, s.Position, s.Seed = h.Step, sampler.Position{Epoch: h.Epoch, Offset: h.Offset}, h.Seed
	s.BucketOrder = bucketOrder
	return r, nil
}

// readOrder returns BucketOrder, nil if the file has none.
func (r *reader) readOrder() (all []int, err error) {
	for range r.head.Params {
		var i int64
		if err := binary.Read(r.in, order, &i); err != nil {
			return nil, fmt.Errorf("bucket order of %d parameters: %w", r.head.Params, err)
		}
		all = append(all, int(i))
	}
	return all, nil
}

// readHeader returns the header of a file of size bytes, if the file is whole and of this version.
func readHeader(r io.ReadSeeker, size int64) (h header, err error) {
	if size < headerSize+trailerSize {
		return h, fmt.Errorf("file of %d bytes is too short to be a snapshot", size)
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return h, err
	}
	if err := binary.Read(r, order, &h); err != nil {
		return h, err
	}
	switch {
	case string(h.Magic[:]) != fileMagic:
		return h, fmt.Errorf("file begins with %q: want %q, a snapshot", h.Magic, fileMagic)
	case h.Version != fileVersion:
		return h, fmt.Errorf("file has version %d: want %d", h.Version, fileVersion)
	case h.Size != size:
		return h, fmt.Errorf("file has %d bytes: want %d, it was cut short or added to", size, h.Size)
	case h.Step < 0 || h.Epoch < 0 || h.Offset < 0:
		return h, fmt.Errorf("step %d, epoch %d, offset %d: want none negative", h.Step, h.Epoch, h.Offset)
	case (h.Ranks == 0) != (h.Own == 0):
		return h, fmt.Errorf("file has %d slices of each of %d ranks: want none of either, or some of both",
			h.Own, h.Ranks)
	}
	return h, nil
}

// verify compares the checksum.
func verify(r io.ReadSeeker, size int64) error {
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return err
	}
	sum := newSum()
	if _, err := io.CopyN(sum, r, size-trailerSize); err != nil {
		return err
	}
	var trailer [trailerSize]byte
	if _, err := io.ReadFull(r, trailer[:]); err != nil {
		return err
	}
	if want := order.Uint32(trailer[:]); sum.Sum32() != want {
		return fmt.Errorf("file is damaged: its checksum is %08x, want %08x", sum.Sum32(), want)
	}
	return nil
}

// matchTable reads the names, types and lengths of the file's slices. It returns an error for the
// first of Slices that differs, and sets fits if the Hook's slices match.
func (r *reader) matchTable(s *State) error {
	h := &r.head
	if int(h.Slices) != len(s.Slices) {
		return fmt.Errorf("file is of another model: it has %d slices, want %d", h.Slices, len(s.Slices))
	}
	for i, want := range s.Slices {
		got, err := readEntry(r.in)
		if err != nil {
			return fmt.Errorf("slice %d: %w", i, err)
		}
		if got != entryOf(want) {
			return fmt.Errorf("file is of another model: slice %d is %v, want %v", i, got, entryOf(want))
		}
	}
	hook := append(s.Hook.Shared[:len(s.Hook.Shared):len(s.Hook.Shared)], s.Hook.Own...)
	r.fits = int(h.Shared) == len(s.Hook.Shared) && int(h.Own) == len(s.Hook.Own)
	for i := range int(h.Shared) + int(h.Own) {
		got, err := readEntry(r.in)
		if err != nil {
			return fmt.Errorf("slice %d of the hook: %w", i, err)
		}
		r.fits = r.fits && got == entryOf(hook[i])
	}
	if r.fits && s.fileSize(*h) != h.Size {
		return errors.New("file's table does not account for its length")
	}
	return nil
}

// An entry is a slice's line in the table.
type entry struct {
	name, typ string
	count     uint64
}

func (e entry) String() string { return fmt.Sprintf("%q of %d %s", e.name, e.count, e.typ) }

func entryOf(s ddp.Slice) entry {
	return entry{s.Name, s.Data.Type().String(), uint64(s.Data.Len())}
}

// entrySize is the bytes of a slice's line in the table.
func entrySize(s ddp.Slice) int64 { return int64(len(appendEntry(nil, s))) }

func readEntry(in io.Reader) (e entry, err error) {
	if e.name, err = readText[uint16](in); err != nil {
		return e, err
	}
	if e.typ, err = readText[uint8](in); err != nil {
		return e, err
	}
	err = binary.Read(in, order, &e.count)
	return e, err
}

// readText reads a length of type N, and as many bytes.
func readText[N uint8 | uint16](in io.Reader) (string, error) {
	var n N
	if err := binary.Read(in, order, &n); err != nil {
		return "", err
	}
	text := make([]byte, n)
	_, err := io.ReadFull(in, text)
	return string(text), err
}

// Numbers of a device pass through host memory in chunks of at most chunk bytes.
const chunk = 256 << 10

// chunks calls do with stretches of data, in order. For device memory, room has as many bytes in
// host memory.
func chunks(data comm.Buffer, do func(stretch comm.Buffer, room []byte) error) error {
	raw := data.Raw()
	var room []byte
	if !data.IsHost() {
		room = make([]byte, min(raw.Len(), chunk))
	}
	for i := 0; i < raw.Len(); i += chunk {
		n := min(chunk, raw.Len()-i)
		if err := do(raw.Slice(i, i+n), room[:min(n, len(room))]); err != nil {
			return err
		}
	}
	return nil
}

func writeNumbers(out io.Writer, src comm.Buffer) error {
	return chunks(src, func(stretch comm.Buffer, room []byte) error {
		if stretch.IsHost() {
			room = stretch.HostSlice()
		} else if err := stretch.Space().Copy(comm.Of(room), stretch); err != nil {
			return err
		}
		_, err := out.Write(room)
		return err
	})
}

func readNumbers(in io.Reader, dst comm.Buffer) error {
	return chunks(dst, func(stretch comm.Buffer, room []byte) error {
		if stretch.IsHost() {
			_, err := io.ReadFull(in, stretch.HostSlice())
			return err
		}
		if _, err := io.ReadFull(in, room); err != nil {
			return err
		}
		return stretch.Space().Copy(stretch, comm.Of(room))
	})
}

func newSum() hash.Hash32 {
	return crc32.New(crc32.MakeTable(crc32.Castagnoli))
}
