package ucx

import "golang.org/x/sys/unix"

// lockLimit returns the bytes of memory that this process may lock, -1 if there is no limit.
func lockLimit() int64 {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit) != nil || limit.Cur == unix.RLIM_INFINITY {
		return -1
	}
	return int64(limit.Cur)
}

// processors returns the CPUs that the calling thread may run on.
func processors() []int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return nil
	}
	var cpus []int
	for c := range len(set) * 64 {
		if set.IsSet(c) {
			cpus = append(cpus, c)
		}
	}
	return cpus
}
