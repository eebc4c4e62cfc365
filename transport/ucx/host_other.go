//go:build !linux

package ucx

func lockLimit() int64 { return -1 }

func processors() []int { return nil }
