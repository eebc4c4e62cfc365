package stdio

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Take moves descriptors away from the standard ones, which children would otherwise inherit, and
// makes them non-blocking. /dev/null takes the place of standard input and output.
func Take(fds ...*int) error {
	for _, fd := range fds {
		moved, err := unix.FcntlInt(uintptr(*fd), unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			return fmt.Errorf("descriptor %d: %w", *fd, err)
		}
		if err := unix.SetNonblock(moved, true); err != nil {
			return err
		}
		*fd = moved
	}
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("/dev/null: %w", err)
	}
	defer unix.Close(null)
	for fd := range 2 {
		if err := unix.Dup3(null, fd, 0); err != nil {
			return fmt.Errorf("/dev/null: %w", err)
		}
	}
	return nil
}
