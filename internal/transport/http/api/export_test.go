package api

import "chorus/internal/operation"

// ProblemKinds is for tests.
var ProblemKinds = problemKinds

// Statuses are the kinds of errors with the status of each.
func Statuses() map[operation.Kind]int {
	all := map[operation.Kind]int{}
	for kind, s := range statuses {
		all[kind] = s.status
	}
	return all
}
