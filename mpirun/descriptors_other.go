//go:build !linux

package mpirun

// keepDescriptors does nothing here: this process starts no rank.
func keepDescriptors() {}
