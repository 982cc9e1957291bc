//go:build !race

package work_test

// raceDetector: it looks on, and makes computing ten times as slow.
const raceDetector = false
