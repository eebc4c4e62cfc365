package runner

import "golang.org/x/sys/unix"

// bindThread binds the calling thread to the first or the last processor that it may use. On
// failure the kernel places the thread.
func bindThread(which int) {
	var may, one unix.CPUSet
	if unix.SchedGetaffinity(0, &may) != nil {
		return
	}
	chosen := -1
	for cpu := range len(may) * 64 {
		if may.IsSet(cpu) && (chosen < 0 || which > 0) {
			chosen = cpu
		}
	}
	one.Set(chosen)
	_ = unix.SchedSetaffinity(0, &one)
}
