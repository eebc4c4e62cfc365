//go:build !race

package core_test

// raced: the race detector does not watch.
const raced = false
