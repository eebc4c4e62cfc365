package inproc_test

import (
	"testing"

	"gompi/transport"
	"gompi/transport/inproc"
	"gompi/transport/transporttest"
)

func open(t *testing.T, sinks []transport.Sink) *transporttest.Net {
	w := inproc.NewWorld(len(sinks))
	n := &transporttest.Net{Kill: w.Kill}
	for i, s := range sinks {
		p := inproc.NewParker()
		n.Ends = append(n.Ends, transporttest.End{Transport: w.Transport(i, s, p), Parker: p})
	}
	return n
}

func TestConformance(t *testing.T) { transporttest.Run(t, open) }
