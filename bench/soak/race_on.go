//go:build race

package main

// raceDetector: the gateway gets it too.
const raceDetector = true
