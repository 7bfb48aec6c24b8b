//go:build !race

package testkit

// raceDetector: tests that run with the race detector run a binary that has it.
const raceDetector = false
