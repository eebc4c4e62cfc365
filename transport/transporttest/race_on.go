//go:build race

package transporttest

// raceDetector: under it sync.Pool drops items at random, so that counts of allocations mean
// nothing.
const raceDetector = true
