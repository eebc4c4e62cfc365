//go:build !linux

package card

func affinity() CPUs { return nil }

func machineID() []byte { return nil }

func clock() uint64 { return 0 }
