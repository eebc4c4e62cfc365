package machine

import "golang.org/x/sys/unix"

// kernel returns the name and the release of the kernel.
func kernel() string {
	var u unix.Utsname
	unix.Uname(&u) // it cannot fail
	return "linux-" + unix.ByteSliceToString(u.Release[:])
}
