//go:build race

package keep_test

// raceDetector: it looks on, and makes computing ten times as slow.
const raceDetector = true
