//go:build race

package outbox

const raceDetector = true
