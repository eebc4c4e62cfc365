package ddp

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"math"

	"gompi/comm"
)

// A snapshot file is, all numbers little-endian:
//
//	fileHeader
//	for each slice: length of its name (2 bytes), name, count of numbers (8)
//	the numbers of each slice, 4 bytes each
//	CRC-32C of all before it (4)
const (
	fileMagic   = "gompi-sn"
	fileVersion = 1
	trailerSize = 4
)

type fileHeader struct {
	Magic         [8]byte
	Version       uint32
	Slices        uint32
	Size          int64 // bytes of the whole file
	Step          int64
	Epoch, Offset int64
	Seed          uint64
}

var order = binary.LittleEndian

// float32s is the type of all numbers.
var float32s = comm.Of([]float32(nil)).Type()

// encode writes s to w.
func encode(w io.Writer, s *Snapshot) error {
	head := fileHeader{
		Version: fileVersion, Slices: uint32(len(s.Slices)), Step: s.Step,
		Epoch: s.Position.Epoch, Offset: s.Position.Offset, Seed: s.Seed,
	}
	copy(head.Magic[:], fileMagic)
	head.Size = int64(binary.Size(head)) + trailerSize
	for _, slice := range s.Slices {
		if len(slice.Name) > math.MaxUint16 {
			return fmt.Errorf("name of a slice has %d bytes: want at most %d", len(slice.Name), math.MaxUint16)
		}
		if slice.Data.Type() != float32s {
			return fmt.Errorf("slice %q has numbers of %v: want %v", slice.Name, slice.Data.Type(), float32s)
		}
		head.Size += int64(2 + len(slice.Name) + 8 + slice.Data.Size())
	}
	sum := newSum()
	out := bufio.NewWriterSize(io.MultiWriter(w, sum), 1<<16)
	buf, err := binary.Append(nil, order, head)
	if err != nil {
		return err
	}
	for _, slice := range s.Slices {
		buf = order.AppendUint16(buf, uint16(len(slice.Name)))
		buf = append(buf, slice.Name...)
		buf = order.AppendUint64(buf, uint64(slice.Data.Len()))
	}
	out.Write(buf) // a bufio.Writer keeps its error for Flush
	for _, slice := range s.Slices {
		if err := writeNumbers(out, slice.Data); err != nil {
			return err
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	_, err = w.Write(order.AppendUint32(nil, sum.Sum32()))
	return err
}

// decode reads into s what encode wrote. It reads the file twice: nothing in s
// changes before the checksum has been found right.
func decode(r io.ReadSeeker, s *Snapshot) error {
	size, err := r.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	head, err := readHeader(r, size)
	if err != nil {
		return err
	}
	if err := verify(r, size); err != nil {
		return err
	}
	in := bufio.NewReaderSize(io.LimitReader(r, size), 1<<16)
	if _, err := in.Discard(binary.Size(head)); err != nil {
		return err
	}
	if err := matchTable(in, head, s.Slices); err != nil {
		return err
	}
	for _, slice := range s.Slices {
		if err := readNumbers(in, slice.Data); err != nil {
			return err
		}
	}
	s.Step, s.Position, s.Seed = head.Step, Position{head.Epoch, head.Offset}, head.Seed
	return nil
}

// readHeader returns the header if it is one of this version and the file, of
// size bytes, is whole.
func readHeader(r io.ReadSeeker, size int64) (head fileHeader, err error) {
	if size < int64(binary.Size(head))+trailerSize {
		return head, fmt.Errorf("file of %d bytes is too short to be a snapshot", size)
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return head, err
	}
	if err := binary.Read(r, order, &head); err != nil {
		return head, err
	}
	switch {
	case string(head.Magic[:]) != fileMagic:
		return head, fmt.Errorf("file begins with %q: want %q, a snapshot", head.Magic, fileMagic)
	case head.Version != fileVersion:
		return head, fmt.Errorf("file has version %d: want %d", head.Version, fileVersion)
	case head.Size != size:
		return head, fmt.Errorf("file has %d bytes: want %d, it was cut short or added to", size, head.Size)
	case head.Step < 0 || head.Epoch < 0 || head.Offset < 0:
		return head, fmt.Errorf("step %d, epoch %d, offset %d: want none negative", head.Step, head.Epoch, head.Offset)
	}
	return head, nil
}

// verify compares the checksum and leaves r at its start.
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
	_, err := r.Seek(0, io.SeekStart)
	return err
}

// matchTable reads the names and lengths of the file's slices and returns an
// error at the first that is not the one wanted.
func matchTable(in io.Reader, head fileHeader, want []Slice) error {
	if int(head.Slices) != len(want) {
		return fmt.Errorf("file is of another model: it has %d slices, want %d", head.Slices, len(want))
	}
	room := head.Size - int64(binary.Size(head)) - trailerSize
	for i, slice := range want {
		name, count, err := readEntry(in)
		if err != nil {
			return fmt.Errorf("slice %d: %w", i, err)
		}
		if name != slice.Name || count != uint64(slice.Data.Len()) {
			return fmt.Errorf("file is of another model: slice %d is %q of %d numbers, want %q of %d",
				i, name, count, slice.Name, slice.Data.Len())
		}
		room -= int64(2 + len(name) + 8 + slice.Data.Size())
	}
	if room != 0 {
		return errors.New("file's table does not account for its length")
	}
	return nil
}

func readEntry(in io.Reader) (name string, count uint64, err error) {
	var length uint16
	if err := binary.Read(in, order, &length); err != nil {
		return "", 0, err
	}
	bytes := make([]byte, length)
	if _, err := io.ReadFull(in, bytes); err != nil {
		return "", 0, err
	}
	err = binary.Read(in, order, &count)
	return string(bytes), count, err
}

// Numbers pass through host memory in chunks of at most so many.
const chunk = 64 << 10

// chunks calls do with stretches of data, one after the other, and room for as many
// numbers in host memory.
func chunks(data comm.Buffer, do func(stretch comm.Buffer, room []float32) error) error {
	room := make([]float32, min(data.Len(), chunk))
	for i := 0; i < data.Len(); i += len(room) {
		n := min(len(room), data.Len()-i)
		if err := do(data.Slice(i, i+n), room[:n]); err != nil {
			return err
		}
	}
	return nil
}

func writeNumbers(out io.Writer, src comm.Buffer) error {
	var bytes []byte
	return chunks(src, func(stretch comm.Buffer, room []float32) error {
		if err := stretch.Space().Copy(comm.Of(room), stretch); err != nil {
			return err
		}
		bytes = bytes[:0]
		for _, v := range room {
			bytes = order.AppendUint32(bytes, math.Float32bits(v))
		}
		_, err := out.Write(bytes)
		return err
	})
}

func readNumbers(in io.Reader, dst comm.Buffer) error {
	bytes := make([]byte, 4*min(dst.Len(), chunk))
	return chunks(dst, func(stretch comm.Buffer, room []float32) error {
		if _, err := io.ReadFull(in, bytes[:stretch.Size()]); err != nil {
			return err
		}
		for i := range room {
			room[i] = math.Float32frombits(order.Uint32(bytes[4*i:]))
		}
		return stretch.Space().Copy(stretch, comm.Of(room))
	})
}

func newSum() hash.Hash32 {
	return crc32.New(crc32.MakeTable(crc32.Castagnoli))
}
