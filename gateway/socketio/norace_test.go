//go:build !race

package socketio_test

const raceEnabled = false
