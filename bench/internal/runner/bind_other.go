//go:build !linux

package runner

// bindThread does nothing: the kernel places the threads.
func bindThread(int) {}
