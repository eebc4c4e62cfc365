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

// A snapshot file is, all numbers little-endian, as they are in the memory of amd64 and arm64:
//
//	fileHeader
//	for each slice: length of its name (2 bytes), name, length of its type's name (1), that, count of
//	numbers (8)
//	the numbers of each slice, as they lie in memory
//	CRC-32C of all before it (4)
const (
	fileMagic   = "gompi-sn"
	fileVersion = 2
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
		head.Size += int64(entrySize(slice) + slice.Data.Size())
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
		typ := slice.Data.Type().String()
		buf = append(append(buf, byte(len(typ))), typ...)
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

// matchTable reads the names, types and lengths of the file's slices and returns an
// error at the first that is not the one wanted.
func matchTable(in io.Reader, head fileHeader, want []Slice) error {
	if int(head.Slices) != len(want) {
		return fmt.Errorf("file is of another model: it has %d slices, want %d", head.Slices, len(want))
	}
	room := head.Size - int64(binary.Size(head)) - trailerSize
	for i, slice := range want {
		name, typ, count, err := readEntry(in)
		if err != nil {
			return fmt.Errorf("slice %d: %w", i, err)
		}
		if name != slice.Name || typ != slice.Data.Type().String() || count != uint64(slice.Data.Len()) {
			return fmt.Errorf("file is of another model: slice %d is %q of %d %s, want %q of %d %v",
				i, name, count, typ, slice.Name, slice.Data.Len(), slice.Data.Type())
		}
		room -= int64(entrySize(slice) + slice.Data.Size())
	}
	if room != 0 {
		return errors.New("file's table does not account for its length")
	}
	return nil
}

// entrySize is the bytes of a slice's line in the table.
func entrySize(s Slice) int { return 2 + len(s.Name) + 1 + len(s.Data.Type().String()) + 8 }

func readEntry(in io.Reader) (name, typ string, count uint64, err error) {
	var long uint16
	if err := binary.Read(in, order, &long); err != nil {
		return "", "", 0, err
	}
	if name, err = readText(in, int(long)); err != nil {
		return "", "", 0, err
	}
	var short uint8
	if err := binary.Read(in, order, &short); err != nil {
		return "", "", 0, err
	}
	if typ, err = readText(in, int(short)); err != nil {
		return "", "", 0, err
	}
	err = binary.Read(in, order, &count)
	return name, typ, count, err
}

func readText(in io.Reader, n int) (string, error) {
	text := make([]byte, n)
	_, err := io.ReadFull(in, text)
	return string(text), err
}

// Numbers of a device pass through host memory in chunks of at most so many bytes.
const chunk = 256 << 10

// chunks calls do with stretches of data, one after the other: of host memory as they are, of a
// device's with as many bytes of room in host memory.
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
