package snapshot

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math"
	"slices"
	"strings"
	"testing"

	"gompi/comm"
	"gompi/comm/ddp"
	"gompi/comm/ddp/sampler"
)

func testState() *State {
	big := make([]float32, 5000) // more than one read
	for i := range big {
		big[i] = float32(i) / 3
	}
	return &State{
		Step: 12, Position: sampler.Position{Epoch: 3, Offset: 456}, Seed: math.MaxUint64, BucketOrder: []int{2, 0, 1},
		Slices: []ddp.Slice{
			{Name: "weights", Data: comm.Of(big)},
			{Name: "none", Data: comm.Of([]float32{})},
			{Name: "odd", Data: comm.Of([]float32{float32(math.Inf(-1)), math.SmallestNonzeroFloat32,
				float32(math.Copysign(0, -1))})},
			{Name: "generator", Data: comm.Of([]uint64{1, math.MaxUint64})},
			{Name: "double", Data: comm.Of([]float64{math.Pi})},
			{Name: "half", Data: comm.Of([]comm.BFloat16{comm.ToBFloat16(1.5)})},
		},
	}
}

// withHook returns testState with the memory of a Hook, of which a rank's own says whose it is.
func withHook(rank int) *State {
	s := testState()
	s.Hook.Shared = []ddp.Slice{{Name: "hook.q", Data: comm.Of([]float32{1, 2, 3})},
		{Name: "hook.drawn", Data: comm.Of([]uint64{7})}}
	s.Hook.Own = []ddp.Slice{
		{Name: "hook.error/a", Data: comm.Of([]float32{float32(rank), 0.5, float32(10 * rank)})},
		{Name: "hook.error/none", Data: comm.Of([]float32{})},
		{Name: "hook.error/b", Data: comm.Of([]float32{float32(100 * rank)})},
	}
	return s
}

// emptied returns a snapshot of the same shape with nothing in it.
func emptied(s *State) *State {
	like := func(all []ddp.Slice) (empty []ddp.Slice) {
		for _, slice := range all {
			empty = append(empty, ddp.Slice{Name: slice.Name,
				Data: comm.Of(make([]byte, slice.Data.Size())).As(slice.Data)})
		}
		return empty
	}
	return &State{Slices: like(s.Slices), Hook: ddp.Memory{Shared: like(s.Hook.Shared), Own: like(s.Hook.Own)}}
}

func same(a, b *State) bool {
	return a.Step == b.Step && a.Position == b.Position && a.Seed == b.Seed &&
		slices.Equal(a.BucketOrder, b.BucketOrder) && sameSlices(a.Slices, b.Slices) &&
		sameSlices(a.Hook.Shared, b.Hook.Shared) && sameSlices(a.Hook.Own, b.Hook.Own)
}

func sameSlices(a, b []ddp.Slice) bool {
	return slices.EqualFunc(a, b, func(x, y ddp.Slice) bool {
		return x.Name == y.Name && bytes.Equal(x.Data.HostSlice(), y.Data.HostSlice())
	})
}

// encoded returns the file of one rank.
func encoded(t testing.TB, s *State) []byte {
	var buf bytes.Buffer
	own := s.Hook.Own
	err := encode(&buf, s, 1, func() ([]byte, error) {
		data := own[0].Data.HostSlice()
		own = own[1:]
		return data, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// decoded reads a file of one rank into s.
func decoded(file []byte, s *State) error {
	r, err := decode(bytes.NewReader(file), s)
	if err != nil || !r.fits {
		return err
	}
	for _, slice := range s.Hook.Own {
		if err := readNumbers(r.in, slice.Data); err != nil {
			return err
		}
	}
	return nil
}

func TestSnapshotSurvivesEncoding(t *testing.T) {
	for _, want := range []*State{testState(), withHook(3)} {
		got := emptied(want)
		if err := decoded(encoded(t, want), got); err != nil {
			t.Fatal(err)
		}
		if !same(got, want) {
			t.Errorf("decoded\n%+v\nwant\n%+v", got, want)
		}
	}
}

// resum gives a changed file a checksum that is right.
func resum(file []byte) []byte {
	body := file[:len(file)-trailerSize]
	return binary.LittleEndian.AppendUint32(bytes.Clone(body), crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
}

func TestDamagedFileIsRefusedAndChangesNothing(t *testing.T) {
	whole := encoded(t, withHook(3))
	set := func(at int, value byte) []byte {
		file := bytes.Clone(whole)
		file[at] = value
		return file
	}
	flip := func(at int) []byte { return set(at, whole[at]^0x10) }
	for _, tc := range []struct {
		name string
		file []byte
		want string
	}{
		{"empty", nil, "too short"},
		{"header only", whole[:20], "too short"},
		{"first header only", whole[:62], "too short"},
		{"cut", whole[:len(whole)-1], "cut short"},
		{"extended", append(bytes.Clone(whole), 0), "added to"},
		{"not a snapshot", flip(0), "begins with"},
		{"other version", resum(flip(8)), "version 20: want 4"},
		{"bit of the step", flip(24), "damaged"},
		{"bit of a number", flip(len(whole) / 2), "damaged"},
		{"bit of the checksum", flip(len(whole) - 1), "damaged"},
		{"negative step", resum(set(31, 0x80)), "step -9223372036854775796"},
		{"no ranks", resum(set(64, 0)), "file has 3 slices of each of 0 ranks"},
		{"other ranks", resum(set(64, 2)), "does not account for its length"},
		{"very many ranks", resum(set(67, 0xff)), "does not account for its length"},
		{"very many slices of the hook", resum(set(59, 0xff)), "slice"},
		{"very many parameters", resum(set(71, 0xff)), "bucket order of 4278190083 parameters"},
		{"fewer parameters", resum(set(68, 2)), "slice 0"},
		{"name longer than the file", resum(set(97, 0xff)), "slice 0"},
	} {
		s := emptied(withHook(3))
		err := decoded(tc.file, s)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v: want an error with %q", tc.name, err, tc.want)
		}
		if !same(s, emptied(withHook(3))) {
			t.Errorf("%s: the snapshot has changed", tc.name)
		}
	}
}

func TestFileOfAnotherModelIsRefusedByName(t *testing.T) {
	file := encoded(t, testState())
	for _, tc := range []struct {
		name   string
		change func(s *State)
		want   string
	}{
		{"fewer slices", func(s *State) { s.Slices = s.Slices[:2] }, "it has 6 slices, want 2"},
		{"other name", func(s *State) { s.Slices[2].Name = "even" },
			`slice 2 is "odd" of 3 float32, want "even" of 3 float32`},
		{"other length", func(s *State) { s.Slices[2].Data = comm.Of(make([]float32, 4)) },
			`slice 2 is "odd" of 3 float32, want "odd" of 4 float32`},
		{"other type", func(s *State) { s.Slices[2].Data = comm.Of(make([]int32, 3)) },
			`slice 2 is "odd" of 3 float32, want "odd" of 3 int32`},
	} {
		s := emptied(testState())
		tc.change(s)
		if err := decoded(file, s); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v: want %q", tc.name, err, tc.want)
		}
	}
}

// Whatever the bytes: an error or a snapshot that encodes to the same bytes, if the file is of one
// rank, and all of it was wanted.
func FuzzDecode(f *testing.F) {
	f.Add(encoded(f, testState()))
	f.Add(encoded(f, &State{}))
	f.Add(encoded(f, withHook(3)))
	f.Add(encoded(f, emptied(testState()))[:70])
	f.Fuzz(func(t *testing.T, file []byte) {
		if len(file) > trailerSize {
			file = resum(file)
		}
		for _, s := range []*State{{}, emptied(testState()), emptied(withHook(0))} {
			r, err := decode(bytes.NewReader(file), s)
			if err != nil || !r.fits || r.head.Ranks > 1 {
				continue
			}
			if err := decoded(file, s); err != nil || !bytes.Equal(encoded(t, s), file) {
				t.Errorf("decoded %d bytes that encode to others (%v)", len(file), err)
			}
		}
	})
}
