//go:build !linux || !cgo

package ucp

import "errors"

var errBuild = errors.New("this program was built without UCX: want linux and CGO_ENABLED=1")

// A Worker does not exist here; the rest lets package ucx compile.
type Worker struct{}

type ref struct{}

// A Remote does not exist either.
type Remote = *struct{}

// Load fails: there is no UCX.
func Load() error { return errBuild }

// Open fails, too.
func Open(Options) (*Worker, error) { return nil, errBuild }

func (*Worker) Address() []byte                        { return nil }
func (*Worker) FD() int                                { return -1 }
func (*Worker) Header() []byte                         { return nil }
func (*Worker) Connect(int, []byte) error              { return errBuild }
func (*Worker) Disconnect(int)                         {}
func (*Worker) Admit(int, uint64, uint64)              {}
func (*Worker) SendHello(int, []byte) bool             { return false }
func (*Worker) Send(int, Kind, []byte) bool            { return false }
func (*Worker) Register(int, []byte) error             { return errBuild }
func (*Worker) Deregister(int) bool                    { return true }
func (*Worker) Recall()                                {}
func (*Worker) Recalls() uint64                        { return 0 }
func (*Worker) Put(int, int, []byte) bool              { return false }
func (*Worker) Poll() int                              { return 0 }
func (*Worker) Next() (m Message, ok bool)             { return m, false }
func (*Worker) Done(Message)                           {}
func (*Worker) Arm() bool                              { return false }
func (*Worker) Flush()                                 {}
func (*Worker) Lanes(int) []string                     { return nil }
func (*Worker) Outstanding() int                       { return 0 }
func (*Worker) Unauthenticated() uint64                { return 0 }
func (*Worker) Close() (int, int)                      { return 0, 0 }
func (*Worker) Key(int) []byte                         { return nil }
func (*Worker) Remote(int, []byte) Remote              { return nil }
func (*Worker) Forget(Remote)                          {}
func (*Worker) Write(Remote, uintptr, []byte) bool     { return false }
func (*Worker) Read(Remote, uintptr, int, uint64) bool { return false }
func (*Worker) Settle(int, uint64)                     {}
