//go:build !linux

package boot

import "errors"

var errChild = errors.ErrUnsupported

func parentsAgent() string { return "" }

func child(string) Boot { return Alone() }

func openAgent() (Boot, error) {
	return nil, errors.New("ranks started by gompirun run on Linux only")
}
