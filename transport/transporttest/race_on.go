//go:build race

package transporttest

// raceDetector: sync.Pool drops items at random under it, so that counting
// allocations means nothing.
const raceDetector = true
