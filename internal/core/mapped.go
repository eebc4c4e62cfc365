package core

import "syscall"

// mapped returns n zeroed bytes outside Go's heap, which begin at a page.
func mapped(n int) ([]byte, error) {
	return syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
}

// unmap frees the result of mapped.
func unmap(b []byte) { _ = syscall.Munmap(b) } // fails only for other memory
