package sandbox

// EarlyStarter is an Executor whose first command needs preparation that
// can start early, while a model is still thinking.
type EarlyStarter interface {
	// StartEarly prepares a command with these roots and this directory if one is likely to come.
	// It does not wait, and reports no failure: the command itself will.
	StartEarly(cmd Command)
}
