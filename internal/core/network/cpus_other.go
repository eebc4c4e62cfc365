//go:build !linux

package network

func affinity() CPUs { return nil }

func machineID() []byte { return nil }

func clock() uint64 { return 0 }
