package seal

import (
	"bytes"
	"errors"
	"io"
	"net"
	"slices"
	"testing"
)

func keys() (caller, callee Key) { return Keys([]byte("secret"), []byte("said")) }

// records returns one for each payload.
func records(k Key, payloads ...string) [][]byte {
	w := NewWriter(k)
	var all [][]byte
	for _, p := range payloads {
		all = append(all, w.Close(append(w.Open(nil), p...), 0))
	}
	return all
}

// read returns the records that a reader takes out of a stream, and its error.
func read(k Key, stream []byte, step int) (got []string, err error) {
	r := NewReader(k)
	for len(stream) > 0 {
		n := copy(r.ReadBuffer(), stream[:min(step, len(stream))])
		stream = stream[n:]
		r.Filled(n)
		for {
			p, ok, err := r.Next()
			if err != nil {
				return got, err
			}
			if !ok {
				break
			}
			got = append(got, string(p))
		}
	}
	return got, nil
}

func TestRecordsArriveAsTheyWereSent(t *testing.T) {
	k, _ := keys()
	want := []string{"one", "", "three", string(make([]byte, MaxPayload)), "five"}
	stream := bytes.Join(records(k, want...), nil)
	for _, step := range []int{1, 7, 1 << 20} {
		if got, err := read(k, stream, step); err != nil || !slices.Equal(got, want) {
			t.Errorf("%d bytes at a time: %d records, %v; want %d", step, len(got), err, len(want))
		}
	}
}

// Whatever somebody between the two ends does, the records read until that is noticed are the
// beginning of the written ones.
func TestNothingForgedIsRead(t *testing.T) {
	k, back := keys()
	output := []string{"one", "two", "three"}
	rs := records(k, output...)
	foreign, _ := Keys([]byte("secret"), []byte("said on another connection"))
	cut := slices.Clone(rs[1])
	cut[0]--
	long := slices.Clone(rs[1])
	long[2] = 9
	for name, stream := range map[string][][]byte{
		"one left out":          {rs[0], rs[2]},
		"one twice":             {rs[0], rs[0]},
		"another order":         {rs[1], rs[0]},
		"of another connection": {rs[0], records(foreign, output...)[1]},
		"sent back":             {records(back, output...)[0]},
		"made up":               {rs[0], []byte("GET / HTTP/1.1\r\nHost: example.org\r\n\r\n")},
		"shorter":               {rs[0], cut, rs[2]},
		"too long":              {rs[0], long},
	} {
		got, err := read(k, bytes.Join(stream, nil), 1<<20)
		if !errors.Is(err, ErrForged) || !slices.Equal(got, output[:len(got)]) {
			t.Errorf("%s: read %q, %v; want %v", name, got, err, ErrForged)
		}
	}
	for i := range rs[1] {
		b := slices.Clone(rs[1])
		b[i] ^= 1
		got, err := read(k, slices.Concat(rs[0], b, rs[2]), 1<<20)
		if len(got) != 1 || err != nil && !errors.Is(err, ErrForged) {
			t.Errorf("byte %d changed: read %q, %v", i, got, err)
		}
	}
}

func TestTheMACCostsNoMemory(t *testing.T) {
	k, _ := keys()
	w, r := NewWriter(k), NewReader(k)
	payload, buf := make([]byte, 1000), make([]byte, 0, MaxPayload+Overhead)
	n := testing.AllocsPerRun(100, func() {
		b := w.Close(append(w.Open(buf[:0]), payload...), 0)
		r.Filled(copy(r.ReadBuffer(), b))
		if _, ok, err := r.Next(); !ok || err != nil {
			t.Fatal(ok, err)
		}
	})
	if n > 0 {
		t.Errorf("%v allocations for each record", n)
	}
}

func TestAConnCarriesLongAndShort(t *testing.T) {
	a, b := net.Pipe()
	caller, callee := keys()
	from, to := NewConn(a, caller, callee), NewConn(b, callee, caller)
	want := bytes.Repeat([]byte("0123456789"), 20_000)
	go func() {
		from.Write(want)
		from.Write([]byte("end"))
		a.Close()
	}()
	got, err := io.ReadAll(to)
	if err != nil || !bytes.Equal(got, append(want, "end"...)) {
		t.Errorf("%d bytes, %v; want %d", len(got), err, len(want)+3)
	}
}

func FuzzReader(f *testing.F) {
	k, _ := keys()
	f.Add(bytes.Join(records(k, "one", "two"), nil), 3)
	f.Add([]byte("\xff\xff\xff\xff"), 1)
	f.Fuzz(func(t *testing.T, stream []byte, step int) {
		want := []string{"one", "two"}
		got, _ := read(k, stream, max(step, 1))
		if len(got) > len(want) || !slices.Equal(got, want[:len(got)]) {
			t.Fatalf("read %q", got)
		}
	})
}

func BenchmarkRecord(b *testing.B) {
	k, _ := keys()
	w, r := NewWriter(k), NewReader(k)
	payload, buf := make([]byte, MaxPayload), make([]byte, 0, MaxPayload+Overhead)
	b.SetBytes(MaxPayload)
	for b.Loop() {
		record := w.Close(append(w.Open(buf[:0]), payload...), 0)
		r.Filled(copy(r.ReadBuffer(), record))
		if _, ok, err := r.Next(); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}
