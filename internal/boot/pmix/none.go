//go:build !linux || !cgo

package pmix

import "fmt"

// Init fails: without C no library can be opened.
func Init() (*Launcher, error) {
	return nil, fmt.Errorf("%w: this program was built without C (CGO_ENABLED=0): build it on Linux with CGO_ENABLED=1 and a C compiler", ErrLibrary)
}

func (l *Launcher) Put(_, _ string) error      { return ErrLibrary }
func (l *Launcher) Barrier() error             { return ErrLibrary }
func (l *Launcher) Get(string) (string, error) { return "", ErrLibrary }
func finalize() error                          { return ErrLibrary }
func abort(int, string) error                  { return ErrLibrary }
