//go:build !race

package discordsim

// raceDetected is whether the race detector looks on.
const raceDetected = false
