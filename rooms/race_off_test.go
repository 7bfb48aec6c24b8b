//go:build !race

package rooms_test

// raceDetector: figures that are measured with it say nothing.
const raceDetector = false
