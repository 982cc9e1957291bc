package work

import (
	"cmp"
	"slices"
	"time"
)

// Load is what the scheduler knows about a project.
type Load struct {
	ID      string
	Weight  float64
	MaxRuns int
	Running int         // tasks with a worker
	Tokens  int64       // used in the rolling window
	Limit   int64       // limit of Tokens; 0: none
	Done    int         // tasks completed in the rolling window
	Mean    int64       // average tokens per task; 0: unknown
	Ready   []Candidate // tasks that can begin
}

// Candidate is a task that can begin.
type Candidate struct {
	ID       string
	Priority int
	Created  time.Time
	Tree     string // what only one task may use at a time, such as a checkout; "" if nothing
	Agent    string // the agent that works on it
}

// Snapshot is everything that a decision depends on.
type Snapshot struct {
	Paused   bool
	Slots    int   // free worker slots
	Tokens   int64 // used by all in the rolling window
	Limit    int64 // limit of Tokens; 0: none
	Busy     []string
	Holds    map[string]int // number of tasks of each worker
	Projects []Load
}

// Assignment gives a task to a worker.
type Assignment struct {
	Project string
	Task    string
	Worker  string // name of the worker
}

// guess is the expected size of a task if none was finished yet. Only the relation between tasks matters then.
const guess = 10_000

// Plan decides which tasks begin now, at most one for each free worker. Projects that finished
// nothing in the window come first. Then come those that have used the fewest tokens for their
// weight; running tasks and those assigned in this round count with the usual size of the
// project's tasks. So shares follow the weights, and no project starves: while it waits, its
// number stays the same and those of the others grow, whatever their limits and however small its
// weight. Within a project the lowest priority number comes first, then the oldest. The result
// depends only on the snapshot.
func Plan(s Snapshot) []Assignment {
	if s.Paused || s.Slots <= 0 || s.Limit > 0 && s.Tokens >= s.Limit {
		return nil
	}
	taken := map[string]bool{}
	for _, tree := range s.Busy {
		taken[tree] = true
	}
	queues := make([]*queue, 0, len(s.Projects))
	for _, p := range s.Projects {
		queues = append(queues, newQueue(p))
	}
	var out []Assignment
	for len(out) < s.Slots {
		best, task := pick(queues, taken)
		if best == nil {
			return out
		}
		out = append(out, Assignment{Project: best.ID, Task: task.ID})
		if task.Tree != "" {
			taken[task.Tree] = true
		}
		best.Running++
		best.spent += best.expected()
	}
	return out
}

// queue is a project while a round is planned.
type queue struct {
	Load
	spent int64
}

func newQueue(p Load) *queue {
	q := &queue{Load: p, spent: p.Tokens}
	q.spent += int64(q.Running) * q.expected() // running tasks are not accounted for yet
	q.Ready = slices.Clone(p.Ready)
	slices.SortFunc(q.Ready, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	})
	return q
}

func (q *queue) expected() int64 {
	if q.Mean > 0 {
		return q.Mean
	}
	return guess
}

// weight is never zero. A project without a weight gets what others leave.
func (q *queue) weight() float64 { return max(q.Weight, 0.001) }

// open reports whether another task of the project may begin.
func (q *queue) open() bool {
	return len(q.Ready) > 0 && q.Running < q.MaxRuns && (q.Limit <= 0 || q.Tokens < q.Limit)
}

// pick takes the next task from the queue that is most entitled to it.
func pick(queues []*queue, taken map[string]bool) (*queue, Candidate) {
	order := make([]*queue, 0, len(queues))
	for _, q := range queues {
		if q.open() {
			order = append(order, q)
		}
	}
	slices.SortStableFunc(order, func(a, b *queue) int {
		return cmp.Or(cmp.Compare(min(1, a.Done+a.Running), min(1, b.Done+b.Running)),
			cmp.Compare(a.had(), b.had()), cmp.Compare(a.ID, b.ID))
	})
	for _, q := range order {
		for i, c := range q.Ready {
			if c.Tree == "" || !taken[c.Tree] {
				q.Ready = slices.Delete(q.Ready, i, i+1)
				return q, c
			}
		}
	}
	return nil, Candidate{}
}

// had returns what the project has used, relative to its weight.
func (q *queue) had() float64 { return float64(q.spent) / q.weight() }
