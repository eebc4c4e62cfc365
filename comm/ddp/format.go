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
		head.Size += int64(2 + len(slice.Name) + 8 + 4*len(slice.Data))
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
		buf = order.AppendUint64(buf, uint64(len(slice.Data)))
	}
	out.Write(buf) // a bufio.Writer keeps its error for Flush
	for _, slice := range s.Slices {
		for _, v := range slice.Data {
			buf = order.AppendUint32(buf[:0], math.Float32bits(v))
			out.Write(buf)
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
		if name != slice.Name || count != uint64(len(slice.Data)) {
			return fmt.Errorf("file is of another model: slice %d is %q of %d numbers, want %q of %d",
				i, name, count, slice.Name, len(slice.Data))
		}
		room -= int64(2 + len(name) + 8 + 4*len(slice.Data))
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

func readNumbers(in io.Reader, dst []float32) error {
	var buf [4 << 10]byte
	for len(dst) > 0 {
		n := min(len(dst), len(buf)/4)
		if _, err := io.ReadFull(in, buf[:4*n]); err != nil {
			return err
		}
		for i := range dst[:n] {
			dst[i] = math.Float32frombits(order.Uint32(buf[4*i:]))
		}
		dst = dst[n:]
	}
	return nil
}

func newSum() hash.Hash32 {
	return crc32.New(crc32.MakeTable(crc32.Castagnoli))
}
