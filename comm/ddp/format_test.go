package ddp

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math"
	"slices"
	"strings"
	"testing"

	"gompi/comm"
)

func testSnapshot() *Snapshot {
	big := make([]float32, 5000) // more than one read
	for i := range big {
		big[i] = float32(i) / 3
	}
	return &Snapshot{
		Step: 12, Position: Position{Epoch: 3, Offset: 456}, Seed: math.MaxUint64,
		Slices: []Slice{
			{"weights", comm.Of(big)},
			{"none", comm.Of([]float32{})},
			{"odd", comm.Of([]float32{float32(math.Inf(-1)), math.SmallestNonzeroFloat32, float32(math.Copysign(0, -1))})},
			{"generator", comm.Of([]uint64{1, math.MaxUint64})},
			{"double", comm.Of([]float64{math.Pi})},
			{"half", comm.Of([]comm.BFloat16{comm.ToBFloat16(1.5)})},
		},
	}
}

// emptied returns a snapshot of the same shape with nothing in it.
func emptied(s *Snapshot) *Snapshot {
	e := &Snapshot{}
	for _, slice := range s.Slices {
		e.Slices = append(e.Slices, Slice{slice.Name, comm.Of(make([]byte, slice.Data.Size())).As(slice.Data)})
	}
	return e
}

func same(a, b *Snapshot) bool {
	return a.Step == b.Step && a.Position == b.Position && a.Seed == b.Seed &&
		slices.EqualFunc(a.Slices, b.Slices, func(x, y Slice) bool {
			return x.Name == y.Name && bytes.Equal(x.Data.HostSlice(), y.Data.HostSlice())
		})
}

func encoded(t testing.TB, s *Snapshot) []byte {
	var buf bytes.Buffer
	if err := encode(&buf, s); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestSnapshotSurvivesEncoding(t *testing.T) {
	want := testSnapshot()
	got := emptied(want)
	if err := decode(bytes.NewReader(encoded(t, want)), got); err != nil {
		t.Fatal(err)
	}
	if !same(got, want) {
		t.Errorf("decoded\n%+v\nwant\n%+v", got, want)
	}
}

// resum gives a changed file a checksum that is right.
func resum(file []byte) []byte {
	body := file[:len(file)-trailerSize]
	return binary.LittleEndian.AppendUint32(bytes.Clone(body), crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
}

func TestDamagedFileIsRefusedAndChangesNothing(t *testing.T) {
	whole := encoded(t, testSnapshot())
	flip := func(at int) []byte {
		file := bytes.Clone(whole)
		file[at] ^= 0x10
		return file
	}
	for _, tc := range []struct {
		name string
		file []byte
		want string
	}{
		{"empty", nil, "too short"},
		{"header only", whole[:20], "too short"},
		{"cut", whole[:len(whole)-1], "cut short"},
		{"extended", append(bytes.Clone(whole), 0), "added to"},
		{"not a snapshot", flip(0), "begins with"},
		{"other version", resum(flip(8)), "version 18: want 2"},
		{"bit of the step", flip(24), "damaged"},
		{"bit of a number", flip(len(whole) / 2), "damaged"},
		{"bit of the checksum", flip(len(whole) - 1), "damaged"},
		{"negative step", resum(flip(31)[:len(whole)-1]), ""},
		{"name longer than the file", resum(flip(57)), ""},
	} {
		s := emptied(testSnapshot())
		err := decode(bytes.NewReader(tc.file), s)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v: want an error with %q", tc.name, err, tc.want)
		}
		if !same(s, emptied(testSnapshot())) {
			t.Errorf("%s: the snapshot has changed", tc.name)
		}
	}
}

func TestFileOfAnotherModelIsRefusedByName(t *testing.T) {
	file := encoded(t, testSnapshot())
	for _, tc := range []struct {
		name   string
		change func(s *Snapshot)
		want   string
	}{
		{"fewer slices", func(s *Snapshot) { s.Slices = s.Slices[:2] }, "it has 6 slices, want 2"},
		{"other name", func(s *Snapshot) { s.Slices[2].Name = "even" }, `slice 2 is "odd" of 3 float32, want "even" of 3 float32`},
		{"other length", func(s *Snapshot) { s.Slices[2].Data = comm.Of(make([]float32, 4)) }, `slice 2 is "odd" of 3 float32, want "odd" of 4 float32`},
		{"other type", func(s *Snapshot) { s.Slices[2].Data = comm.Of(make([]int32, 3)) }, `slice 2 is "odd" of 3 float32, want "odd" of 3 int32`},
	} {
		s := emptied(testSnapshot())
		tc.change(s)
		if err := decode(bytes.NewReader(file), s); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v: want %q", tc.name, err, tc.want)
		}
	}
}

// Whatever the bytes: an error or a snapshot that encodes to the same bytes.
func FuzzDecode(f *testing.F) {
	f.Add(encoded(f, testSnapshot()))
	f.Add(encoded(f, &Snapshot{}))
	f.Add(encoded(f, emptied(testSnapshot()))[:70])
	f.Fuzz(func(t *testing.T, file []byte) {
		if len(file) > trailerSize {
			file = resum(file)
		}
		for _, s := range []*Snapshot{{}, emptied(testSnapshot())} {
			if decode(bytes.NewReader(file), s) == nil && !bytes.Equal(encoded(t, s), file) {
				t.Errorf("decoded %d bytes that encode to others", len(file))
			}
		}
	})
}
