package api

import "chorus/internal/command"

// ProblemKinds is for tests.
var ProblemKinds = problemKinds

// Statuses are the kinds of errors with the status of each.
func Statuses() map[command.Kind]int {
	all := map[command.Kind]int{}
	for kind, s := range statuses {
		all[kind] = s.status
	}
	return all
}
