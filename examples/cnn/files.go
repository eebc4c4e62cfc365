package main

// MNIST's files have the format idx: bytes with one to three dimensions. A file has two bytes of
// zero, the type of its numbers, the number of its dimensions, the size of each as four bytes, the
// most significant first, and the numbers.

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"gompi/internal/atomicfile"
)

// digits are pictures, one byte for each pixel, with their labels.
type digits struct {
	Height, Width int
	Pixels        []byte // picture by picture, line by line
	Labels        []byte
}

// The names of MNIST's files; any of them may have .gz after it.
const (
	trainImages = "train-images-idx3-ubyte"
	trainLabels = "train-labels-idx1-ubyte"
	testImages  = "t10k-images-idx3-ubyte"
	testLabels  = "t10k-labels-idx1-ubyte"
)

const bytesType = 0x08

// mostNumbers bounds the numbers of a file.
const mostNumbers = 1 << 30

// readDigits returns the set in two files of the folder.
func readDigits(dir, images, labels string) (*digits, error) {
	sizes, pixels, err := readFile(dir, images, 3)
	if err != nil {
		return nil, err
	}
	count, kinds, err := readFile(dir, labels, 1)
	if err != nil {
		return nil, err
	}
	if count[0] != sizes[0] {
		return nil, fmt.Errorf("%s has %d pictures, %s %d labels: want a label for each picture",
			filepath.Join(dir, images), sizes[0], labels, count[0])
	}
	return &digits{Height: sizes[1], Width: sizes[2], Pixels: pixels, Labels: kinds}, nil
}

// readFile returns the sizes of the dimensions and the numbers of a file, compressed or not.
func readFile(dir, name string, dimensions int) (sizes []int, data []byte, err error) {
	path := filepath.Join(dir, name)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		if packed, none := os.Open(path + ".gz"); none == nil {
			f, err, path = packed, nil, path+".gz"
		}
	}
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if sizes, data, err = decodeFile(bufio.NewReader(f), dimensions); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return sizes, data, nil
}

// decodeFile reads a file. Its first bytes show whether it is compressed.
func decodeFile(r *bufio.Reader, dimensions int) (sizes []int, data []byte, err error) {
	if start, _ := r.Peek(2); bytes.Equal(start, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, nil, err
		}
		r = bufio.NewReader(z)
	}
	head := make([]byte, 4+4*dimensions)
	if n, err := io.ReadFull(r, head); err != nil && n < 4 {
		return nil, nil, fmt.Errorf("%d bytes: want an idx file", n)
	} else if head[0] != 0 || head[1] != 0 || head[2] != bytesType || int(head[3]) != dimensions {
		return nil, nil, fmt.Errorf("it begins with %#02x: want an idx file of bytes with %d dimensions, 0x0000%02x%02x", head[:4], dimensions, bytesType, dimensions)
	} else if err != nil {
		return nil, nil, errors.New("it ends within the sizes of its dimensions")
	}
	all := 1
	for i := range dimensions {
		n := int(binary.BigEndian.Uint32(head[4+4*i:]))
		if sizes = append(sizes, n); n == 0 || all > mostNumbers/n {
			return nil, nil, fmt.Errorf("dimensions of %d: want at least 1 and at most %d numbers", sizes, mostNumbers)
		}
		all *= n
	}
	data, err = io.ReadAll(io.LimitReader(r, int64(all)+1))
	if err != nil {
		return nil, nil, err
	}
	if len(data) != all {
		return nil, nil, fmt.Errorf("dimensions of %d, but %d numbers or more: want %d", sizes, len(data), all)
	}
	return sizes, data, nil
}

// checksum identifies sets: a CRC-32C of their sizes, pixels and labels.
func checksum(sets ...*digits) uint32 {
	h := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	for _, s := range sets {
		fmt.Fprintf(h, "%d of %d x %d:", len(s.Labels), s.Height, s.Width)
		h.Write(s.Pixels)
		h.Write(s.Labels)
	}
	return h.Sum32()
}

// Files are the set as two files.
func (s *digits) Files(images, labels string) []atomicfile.File {
	n := len(s.Labels)
	file := func(name string, data []byte) atomicfile.File {
		return atomicfile.File{Name: name, Write: func(w io.Writer) error {
			_, err := w.Write(data)
			return err
		}}
	}
	return []atomicfile.File{file(images, encodeFile(s.Pixels, n, s.Height, s.Width)),
		file(labels, encodeFile(s.Labels, n))}
}

func encodeFile(data []byte, sizes ...int) []byte {
	file := []byte{0, 0, bytesType, byte(len(sizes))}
	for _, n := range sizes {
		file = binary.BigEndian.AppendUint32(file, uint32(n))
	}
	return append(file, data...)
}
