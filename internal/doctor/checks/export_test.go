package checks

// NewChecker and JudgeSandbox are for the tests of single checks.
var (
	NewChecker   = newChecker
	JudgeSandbox = judgeSandbox
)
