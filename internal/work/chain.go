package work

import (
	"fmt"
	"slices"
	"strings"
)

// Cycle returns a path from a task over its dependencies back to itself, if adding needs would
// create one, or nil. of returns the dependencies of an existing task.
func Cycle(task string, needs []string, of func(task string) ([]string, error)) ([]string, error) {
	seen := map[string]bool{}
	var walk func(at string, path []string) ([]string, error)
	walk = func(at string, path []string) ([]string, error) {
		path = append(path, at)
		if at == task {
			return path, nil
		}
		if seen[at] {
			return nil, nil
		}
		seen[at] = true
		next, err := of(at)
		if err != nil {
			return nil, err
		}
		for _, n := range next {
			if found, err := walk(n, path); found != nil || err != nil {
				return found, err
			}
		}
		return nil, nil
	}
	for _, n := range needs {
		if found, err := walk(n, []string{task}); found != nil || err != nil {
			return found, err
		}
	}
	return nil, nil
}

// CycleError says which tasks would wait for each other forever.
type CycleError struct{ Path []string }

func (e *CycleError) Error() string {
	return fmt.Sprintf("these tasks would wait for each other: %s. Leave out one of the dependencies", strings.Join(e.Path, " → "))
}

// Stuck returns the tasks that wait for a blocked one, directly or indirectly,
// nearest first. dependents returns the tasks that need a task.
func Stuck(blocked string, dependents func(task string) ([]Task, error)) ([]Task, error) {
	var out []Task
	seen := map[string]bool{blocked: true}
	for queue := []string{blocked}; len(queue) > 0; queue = queue[1:] {
		next, err := dependents(queue[0])
		if err != nil {
			return nil, err
		}
		slices.SortFunc(next, func(a, b Task) int { return strings.Compare(a.ID, b.ID) })
		for _, t := range next {
			if t.State == Defined && !seen[t.ID] {
				seen[t.ID] = true
				out = append(out, t)
				queue = append(queue, t.ID)
			}
		}
	}
	return out, nil
}
