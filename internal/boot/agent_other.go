//go:build !linux

package boot

import "errors"

func openAgent() (Boot, error) {
	return nil, errors.New("ranks started by gompirun run on Linux only")
}
