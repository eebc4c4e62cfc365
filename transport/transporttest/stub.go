package transporttest

import (
	"fmt"
	"strings"

	"gompi/internal/mem"
	"gompi/internal/world"
	"gompi/transport"
)

// A Stub is a transport that takes every frame and delivers none. Transports of tests embed it.
type Stub struct{}

var _ transport.Transport = Stub{}

func (Stub) Capabilities() transport.Capabilities                        { return transport.Capabilities{} }
func (Stub) Name() string                                                { return "stub" }
func (Stub) Reaches(world.Rank) bool                                     { return true }
func (Stub) Carries(mem.Space) bool                                      { return true }
func (Stub) Send(world.Rank, *transport.Header, mem.Buffer, uint64) bool { return true }
func (Stub) Forget(world.Rank, uint64)                                   {}
func (Stub) Poll(world.Rank) int                                         { return 0 }
func (Stub) Arm() bool                                                   { return true }
func (Stub) Close(bool) bool                                             { return true }

// A Log records the requests to a test's transport.
type Log struct{ lines []string }

// Note records a line.
func (l *Log) Note(format string, args ...any) {
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

// Taken returns the lines since the last call, with "; " between them.
func (l *Log) Taken() string {
	s := strings.Join(l.lines, "; ")
	l.lines = nil
	return s
}
