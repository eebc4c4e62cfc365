package engine

import (
	"reflect"
	"strings"
	"testing"

	"gompi/comm/internal/call"
	"gompi/internal/mem"
)

var someVerdicts = []revokeReason{
	{rank: 3, cause: "is lost: connection cut"},
	{rank: 0, cause: ""},
	{rank: 1 << 30, mismatch: &MismatchError{Seq: 1 << 50, Rank: 3, Peer: 4095,
		Call:     call.Fingerprint{Kind: call.Reduce, Type: mem.F32, Op: mem.Sum, Root: 7, Count: 1 << 40},
		PeerCall: call.Fingerprint{Kind: call.Allgatherv, Type: mem.Bool, Digest: 0xdeadbeef, Count: 5}}},
	{rank: 2, mismatch: &MismatchError{Seq: 1, Call: call.Fingerprint{Kind: call.Gatherv}, PeerCall: call.Fingerprint{Kind: call.Gatherv},
		Block: call.Block{Bytes: 1 << 41, Type: mem.F64}, PeerBlock: call.Block{Bytes: 3, Type: mem.I8}}},
}

func TestRevokeReasonsSurviveTheirTrip(t *testing.T) {
	for _, v := range someVerdicts {
		got, err := decodeRevokeReason(v.encode())
		if err != nil || !reflect.DeepEqual(got, v) {
			t.Errorf("%+v became %+v (%v)", v, got, err)
		}
	}
}

func TestLongCausesAreCut(t *testing.T) {
	b := revokeReason{rank: 1, cause: strings.Repeat("because ", 10_000)}.encode()
	if len(b) > maxRevokeReason {
		t.Errorf("%d bytes, at most %d are received", len(b), maxRevokeReason)
	}
	if v, err := decodeRevokeReason(b); err != nil || !strings.HasPrefix(v.cause, "because because") {
		t.Errorf("got %.40q..., %v", v.cause, err)
	}
}

// A number that is no rank's is not cut down to one that is.
func TestARevokeReasonByNoRankIsRefused(t *testing.T) {
	b := revokeReason{rank: 1, cause: "why"}.encode()
	b[4] = 1 // so the rank is 1<<32 + 1
	if v, err := decodeRevokeReason(b); err == nil {
		t.Errorf("it is taken for rank %d's", v.rank)
	}
}

func FuzzVerdict(f *testing.F) {
	for _, v := range someVerdicts {
		f.Add(v.encode())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := decodeRevokeReason(b)
		if err != nil {
			return
		}
		if again, err := decodeRevokeReason(v.encode()); len(b) <= maxRevokeReason && (err != nil || !reflect.DeepEqual(again, v)) {
			t.Errorf("%x decodes to %+v, and that, encoded, to %+v (%v)", b, v, again, err)
		}
		if v.mismatch != nil {
			_ = v.mismatch.Error()
		}
	})
}

func TestCallsSurviveTheirTrip(t *testing.T) {
	for k := call.None; k <= call.Free; k++ {
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
