//go:build !linux

package mpirun

import (
	"os"
	"syscall"

	"gompi/mpirun/internal/table"
)

// keepDescriptors does nothing here: this process starts no rank.
func keepDescriptors() {}

// A mark here misses a CONT that comes just before this process stops.
type mark struct{}

func newMark() *mark { return &mark{} }

func (*mark) set() {}

func (*mark) stop(<-chan struct{}) { syscall.Kill(syscall.Getpid(), syscall.SIGSTOP) }

func awaitHandlers(syscall.Signal) {}

// blockSignal does nothing here: a job that reads the terminal from the background is stopped.
func blockSignal(syscall.Signal) (restore func()) { return func() {} }

// screenSize knows no terminals: ranks run on Linux only.
func screenSize(*os.File) (lines, columns int, ok bool) { return 0, table.Width, false }
