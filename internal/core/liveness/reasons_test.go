package liveness

import (
	"reflect"
	"strings"
	"testing"

	"gompi/internal/calls"
	"gompi/internal/core/call"
	"gompi/internal/mem"
)

var someReasons = []Reason{
	{Rank: 3, Cause: "is lost: connection cut"},
	{Rank: 4, Cause: "is lost: killed", Died: true},
	{Rank: 0, Cause: ""},
	{Rank: 1 << 30, Mismatch: &MismatchError{Seq: 1 << 50, Rank: 3, Peer: 4095,
		Call:     call.Fingerprint{Kind: calls.Reduce, Type: mem.F32, Op: mem.Sum, Root: 7, Count: 1 << 40},
		PeerCall: call.Fingerprint{Kind: calls.Allgatherv, Type: mem.Bool, Digest: 0xdeadbeef, Count: 5}}},
	{Rank: 2, Mismatch: &MismatchError{Seq: 1, Call: call.Fingerprint{Kind: calls.Gatherv},
		PeerCall: call.Fingerprint{Kind: calls.Gatherv},
		Block:    call.Block{Bytes: 1 << 41, Type: mem.F64}, PeerBlock: call.Block{Bytes: 3, Type: mem.I8}}},
}

func TestRevokeReasonsSurviveTheirTrip(t *testing.T) {
	for _, v := range someReasons {
		got, err := DecodeReason(v.Encode())
		if err != nil || !reflect.DeepEqual(got, v) {
			t.Errorf("%+v became %+v (%v)", v, got, err)
		}
	}
}

func TestLongCausesAreCut(t *testing.T) {
	b := Reason{Rank: 1, Cause: strings.Repeat("because ", 10_000)}.Encode()
	if len(b) > MaxReason {
		t.Errorf("%d bytes, at most %d are received", len(b), MaxReason)
	}
	if v, err := DecodeReason(b); err != nil || !strings.HasPrefix(v.Cause, "because because") {
		t.Errorf("got %.40q..., %v", v.Cause, err)
	}
}

// A number that is no rank's is not cut down to one that is.
func TestARevokeReasonByNoRankIsRefused(t *testing.T) {
	b := Reason{Rank: 1, Cause: "why"}.Encode()
	b[4] = 1 // so the rank is 1<<32 + 1
	if v, err := DecodeReason(b); err == nil {
		t.Errorf("it is taken for rank %d's", v.Rank)
	}
}

func FuzzReason(f *testing.F) {
	for _, v := range someReasons {
		f.Add(v.Encode())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := DecodeReason(b)
		if err != nil {
			return
		}
		if again, err := DecodeReason(v.Encode()); len(b) <= MaxReason && (err != nil || !reflect.DeepEqual(again, v)) {
			t.Errorf("%x decodes to %+v, and that, encoded, to %+v (%v)", b, v, again, err)
		}
		if v.Mismatch != nil {
			_ = v.Mismatch.Error()
		}
	})
}

func TestCallsSurviveTheirTrip(t *testing.T) {
	for _, k := range calls.Collectives {
		f := call.Fingerprint{Kind: k, Type: mem.BF16, Op: mem.Max, Count: -1}
		if k.Rooted() {
			f.Root = 1<<31 - 1
		} else {
			f.Digest = 1<<32 - 1
		}
		if got := call.OfWords(f.Words()); got != f {
			t.Errorf("%+v became %+v", f, got)
		}
	}
}
