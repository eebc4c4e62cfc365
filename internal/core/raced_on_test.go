//go:build race

package core_test

// raced: the race detector watches.
const raced = true
