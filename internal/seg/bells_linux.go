package seg

import "golang.org/x/sys/unix"

// NewBells makes n doorbells with consecutive descriptor numbers, from first on or later. They stay
// open on exec, so that all ranks inherit all doorbells at no cost.
func NewBells(n, first int) (bells []int, err error) {
	for next := first; len(bells) < n; {
		bell, err := newBell(next)
		if err != nil {
			return nil, err
		}
		if bell != next { // the number is taken: the row begins anew behind it
			for _, b := range bells {
				unix.Close(b)
			}
			bells = nil
		}
		bells, next = append(bells, bell), bell+1
	}
	return bells, nil
}

// newBell makes a doorbell with the lowest free number from least on.
func newBell(least int) (int, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fd)
	if fd, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD, least); err == unix.EINVAL {
		err = unix.EMFILE // such numbers do not exist
	}
	return fd, err
}
