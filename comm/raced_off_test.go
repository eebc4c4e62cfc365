//go:build !race

package comm_test

// raced: the race detector does not watch.
const raced = false
