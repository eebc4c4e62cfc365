package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"gompi/internal/atomicfile"
)

var set = &digits{Height: 2, Width: 3, Pixels: []byte{0, 1, 2, 3, 4, 255, 6, 7, 8, 9, 10, 11}, Labels: []byte{9, 0}}

// The bytes follow the format's description: 2051 and 2049 are the first numbers of MNIST's.
func TestFilesAreThoseOfMNIST(t *testing.T) {
	dir := t.TempDir()
	if err := atomicfile.Write(dir, set.Files(trainImages, trainLabels)...); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		trainImages: "\x00\x00\x08\x03\x00\x00\x00\x02\x00\x00\x00\x02\x00\x00\x00\x03\x00\x01\x02\x03\x04\xff\x06\x07\x08\x09\x0a\x0b",
		trainLabels: "\x00\x00\x08\x01\x00\x00\x00\x02\x09\x00",
	} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || string(data) != want {
			t.Errorf("%s is %q (%v), want %q", name, data, err, want)
		}
	}
	if got, err := readDigits(dir, trainImages, trainLabels); err != nil || !reflect.DeepEqual(got, set) {
		t.Errorf("read again it is %v (%v)", got, err)
	}
}

func TestCompressedFilesAreRead(t *testing.T) {
	dir := t.TempDir()
	if err := atomicfile.Write(dir, set.Files(testImages, testLabels)...); err != nil {
		t.Fatal(err)
	}
	// one keeps its name
	for name, as := range map[string]string{testImages: testImages + ".gz", testLabels: testLabels} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		z.Write(data)
		z.Close()
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, as), packed.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := readDigits(dir, testImages, testLabels); err != nil || !reflect.DeepEqual(got, set) {
		t.Errorf("compressed they are %v (%v)", got, err)
	}
}

func TestDamagedFilesAreNamedAndQuoted(t *testing.T) {
	good := string(encodeFile(set.Pixels, 2, 2, 3))
	for _, tc := range []struct{ images, want string }{
		{"", "0 bytes: want an idx file"},
		{"<html>", "begins with 0x3c68746d"},
		{good[:9], "ends within the sizes"},
		{good[:20], "but 4 numbers or more: want 12"},
		{good + "x", "but 13 numbers or more: want 12"},
		{strings.Replace(good, "\x08\x03", "\x08\x01", 1), "with 3 dimensions, 0x00000803"},
		{strings.Replace(good, "\x08\x03", "\x0d\x03", 1), "begins with 0x00000d03"},
		{"\x00\x00\x08\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "at most"},
		{"\x1f\x8bxx", "gzip"},
		{string(encodeFile(set.Pixels[:6], 1, 2, 3)), "1 pictures, " + trainLabels + " 2 labels"},
	} {
		dir := t.TempDir()
		if err := atomicfile.Write(dir, set.Files(trainImages, trainLabels)...); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, trainImages), []byte(tc.images), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := readDigits(dir, trainImages, trainLabels)
		if err == nil || !strings.Contains(err.Error(), tc.want) &&
			!(tc.want == "gzip" && strings.Contains(err.Error(), "EOF")) ||
			!strings.Contains(err.Error(), filepath.Join(dir, trainImages)) {
			t.Errorf("%q: error %v, want %q", tc.images, err, tc.want)
		}
	}
	if _, err := readDigits("/no/such/folder", trainImages, trainLabels); err == nil ||
		!strings.Contains(err.Error(), "/no/such/folder/"+trainImages+": no such file") {
		t.Errorf("a missing folder gives error %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(encodeFile(set.Pixels, 2, 2, 3))
	f.Add([]byte("\x1f\x8b\x08"))
	f.Fuzz(func(t *testing.T, file []byte) {
		sizes, data, err := decodeFile(bufio.NewReader(bytes.NewReader(file)), 3)
		if err == nil && sizes[0]*sizes[1]*sizes[2] != len(data) {
			t.Errorf("%d numbers with dimensions of %d", len(data), sizes)
		}
	})
}
