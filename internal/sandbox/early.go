package sandbox

// EarlyStarter is an Executor whose first command waits for something that can be begun before it comes, while a model
// thinks about it.
type EarlyStarter interface {
	// StartEarly begins what a command with these roots and this directory needs, if one is likely to come, and does not wait
	// for it. Where that fails, the command itself says so.
	StartEarly(cmd Command)
}
