//go:build race

package comm_test

// raced: the race detector watches.
const raced = true
