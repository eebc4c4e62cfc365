package tcp

import (
	"bytes"
	"net/netip"
	"testing"
)

func TestHelloRoundTrip(t *testing.T) {
	tr := transcript{caller: 7, callee: 1 << 20}
	tr.listenerNonce[3], tr.fromCaller[31] = 9, 8
	tr.from, tr.to = netip.MustParseAddrPort("10.0.0.1:5000"), netip.MustParseAddrPort("[2001:db8::7]:80")
	tr.sealed, tr.network[15] = true, 7
	var got transcript
	if err := got.readHello(tr.hello()); err != nil || got != tr {
		t.Errorf("hello of %+v reads as %+v, %v", tr, got, err)
	}
}

// A proof must be worth nothing with any part of the handshake changed.
func TestProofCoversEverything(t *testing.T) {
	base := transcript{caller: 1, callee: 2, listenerNonce: [16]byte{3}, fromCaller: [32]byte{4},
		fromCallee: [32]byte{5},
		from:       netip.MustParseAddrPort("10.0.0.1:5000"), to: netip.MustParseAddrPort("10.0.0.2:5001"),
		network: [networkSize]byte{6}}
	proof := base.mac(&secret, "job", stepProof, 0)
	if !base.proves(proof, &secret, "job", stepProof, 0) {
		t.Fatal("a right proof is refused")
	}
	for name, change := range map[string]func(tr *transcript, secret *[32]byte, job *string, s *step, why *reason){
		"caller": func(tr *transcript, _ *[32]byte, _ *string, _ *step, _ *reason) { tr.caller++ },
		"callee": func(tr *transcript, _ *[32]byte, _ *string, _ *step, _ *reason) { tr.callee++ },
		"swapped": func(tr *transcript, _ *[32]byte, _ *string, _ *step, _ *reason) {
			tr.caller, tr.callee = tr.callee, tr.caller
		},
		"card":         func(tr *transcript, _ *[32]byte, _ *string, _ *step, _ *reason) { tr.listenerNonce[0]++ },
		"caller nonce": func(tr *transcript, _ *[32]byte, _ *string, _ *step, _ *reason) { tr.fromCaller[0]++ },
		"callee nonce": func(tr *transcript, _ *[32]byte, _ *string, _ *step, _ *reason) { tr.fromCallee[0]++ },
		"address":      func(tr *transcript, _ *[32]byte, _ *string, _ *step, _ *reason) { tr.from = tr.to },
		"port":         func(tr *transcript, _ *[32]byte, _ *string, _ *step, _ *reason) { tr.to = tr.from },
		"network":      func(tr *transcript, _ *[32]byte, _ *string, _ *step, _ *reason) { tr.network[15]++ },
		"mode":         func(tr *transcript, _ *[32]byte, _ *string, _ *step, _ *reason) { tr.sealed = true },
		"secret":       func(_ *transcript, secret *[32]byte, _ *string, _ *step, _ *reason) { secret[31]++ },
		"job":          func(_ *transcript, _ *[32]byte, job *string, _ *step, _ *reason) { *job = "other" },
		"step":         func(_ *transcript, _ *[32]byte, _ *string, s *step, _ *reason) { *s = stepWelcome },
		"reason":       func(_ *transcript, _ *[32]byte, _ *string, _ *step, why *reason) { *why = leaving },
	} {
		tr, sec, job, s, why := base, secret, "job", stepProof, reason(0)
		change(&tr, &sec, &job, &s, &why)
		if tr.proves(proof, &sec, job, s, why) {
			t.Errorf("a proof is good with another %s", name)
		}
	}
}

func FuzzHello(f *testing.F) {
	f.Add((&transcript{caller: 1, callee: 2}).hello())
	f.Add(make([]byte, helloSize))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) != helloSize {
			return
		}
		var tr transcript
		if tr.readHello(b) != nil {
			return
		}
		b[7] = 0 // a hello has no reason
		if again := tr.hello(); !bytes.Equal(again, b) {
			t.Errorf("% x reads as %+v, which writes as % x", b, tr, again)
		}
	})
}

func TestEveryReasonHasAText(t *testing.T) {
	for r := wrongListener; r < numReasons; r++ {
		if s := r.String(); s == "" || s == reason(200).String() {
			t.Errorf("reason %d reads %q", r, s)
		}
	}
}
