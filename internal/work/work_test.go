package work_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/work"
)

// The 36 moves of the original, as "from step to". Our own stand in the test after it.
const original = `DEFINED DEPS_MET READY
READY ASSIGNED ASSIGNED
ASSIGNED AGENT_STARTED IN_PROGRESS
IN_PROGRESS AGENT_COMPLETED VERIFYING
IN_PROGRESS AGENT_FAILED FAILED
IN_PROGRESS TOKENS_EXHAUSTED PAUSED
IN_PROGRESS AGENT_QUESTION WAITING_INPUT
IN_PROGRESS MAX_RETRIES BLOCKED
IN_PROGRESS RETRY READY
IN_PROGRESS ADMIN_STOP BLOCKED
IN_PROGRESS TIMEOUT BLOCKED
IN_PROGRESS RECOVERY READY
WAITING_INPUT HUMAN_REPLIED IN_PROGRESS
WAITING_INPUT INPUT_TIMEOUT PAUSED
PAUSED RESUME_TIMER READY
VERIFYING VERIFY_PASSED COMPLETED
VERIFYING VERIFY_FAILED FAILED
VERIFYING PR_CREATED AWAITING_APPROVAL
AWAITING_APPROVAL PR_MERGED COMPLETED
AWAITING_APPROVAL PR_CLOSED BLOCKED
FAILED RETRY READY
FAILED MAX_RETRIES BLOCKED
FAILED ADMIN_SKIP COMPLETED
BLOCKED ADMIN_SKIP COMPLETED
ASSIGNED TIMEOUT BLOCKED
ASSIGNED EXECUTION_ERROR READY
ASSIGNED RECOVERY READY
DEFINED ADMIN_RESTART READY
ASSIGNED ADMIN_RESTART READY
WAITING_INPUT ADMIN_RESTART READY
PAUSED ADMIN_RESTART READY
VERIFYING ADMIN_RESTART READY
AWAITING_APPROVAL ADMIN_RESTART READY
COMPLETED ADMIN_RESTART READY
FAILED ADMIN_RESTART READY
BLOCKED ADMIN_RESTART READY`

const ours = `ASSIGNED ADMIN_STOP BLOCKED
WAITING_INPUT ADMIN_STOP BLOCKED
PAUSED ADMIN_STOP BLOCKED
VERIFYING NEEDS_APPROVAL AWAITING_APPROVAL
VERIFYING MERGE_FAILED BLOCKED
AWAITING_APPROVAL APPROVED VERIFYING
IN_PROGRESS DENIED BLOCKED
ASSIGNED MAX_RETRIES BLOCKED
VERIFYING PLAN_FOUND AWAITING_PLAN_APPROVAL
AWAITING_PLAN_APPROVAL PLAN_APPROVED IN_PROGRESS
AWAITING_PLAN_APPROVAL PLAN_REJECTED READY
AWAITING_PLAN_APPROVAL PLAN_DELETED VERIFYING
AWAITING_PLAN_APPROVAL ADMIN_RESTART READY
AWAITING_PLAN_APPROVAL ADMIN_STOP BLOCKED
IN_PROGRESS PLAN_MERGED COMPLETED
IN_PROGRESS PLAN_ENDED VERIFYING
IN_PROGRESS PLAN_STUCK BLOCKED
BLOCKED ADMIN_RESUME IN_PROGRESS
FAILED ADMIN_RESUME IN_PROGRESS
COMPLETED ADMIN_RESUME IN_PROGRESS
VERIFYING ADMIN_RESUME IN_PROGRESS
AWAITING_APPROVAL ADMIN_RESUME IN_PROGRESS`

func TestTasksMoveOnlyAsTheTableSays(t *testing.T) {
	t.Parallel()
	legal := map[[2]string]string{}
	for line := range strings.Lines(original + "\n" + ours) {
		f := strings.Fields(line)
		legal[[2]string{f[0], f[1]}] = f[2]
	}
	if len(legal) != 36+8+14 {
		t.Fatalf("%d rows", len(legal))
	}
	steps := map[string]bool{}
	for p := range legal {
		steps[p[1]] = true
	}
	for _, from := range work.States() {
		for step := range steps {
			want, ok := legal[[2]string{string(from), step}]
			got, err := work.Next(from, work.Step(step))
			var illegal *work.IllegalError
			switch {
			case ok && (err != nil || string(got) != want):
				t.Errorf("%s %s: %s, %v", from, step, got, err)
			case !ok && !errors.As(err, &illegal):
				t.Errorf("%s %s leads to %s", from, step, got)
			case !ok && err.Error() != fmt.Sprintf("Invalid transition: (%s, %s)", from, step):
				t.Error(err)
			}
		}
		if from.Over() { // only people move what is over
			for p := range legal {
				if p[0] == string(from) && !strings.HasPrefix(p[1], "ADMIN_") && from != work.Failed {
					t.Errorf("%v moves a task that is over", p)
				}
			}
		}
	}
	if work.State("ready").Known() || !work.Legal(work.Defined, work.Ready) || work.Legal(work.Completed, work.Blocked) {
		t.Error("states are known by their exact name, and legal by the table")
	}
}

func TestPlanPrefersPriorityThenAge(t *testing.T) {
	t.Parallel()
	at := time.Unix(1000, 0)
	got := work.Plan(work.Snapshot{Slots: 3, Projects: []work.Load{{ID: "p", Weight: 1, MaxRuns: 3, Ready: []work.Candidate{
		{ID: "late", Priority: 200, Created: at}, {ID: "young", Priority: 10, Created: at.Add(time.Second)}, {ID: "old", Priority: 10, Created: at}}}}})
	if fmt.Sprint(got) != "[{p old } {p young } {p late }]" {
		t.Error(got)
	}
}

func TestPlanLetsTheProjectThatFinishedNothingBegin(t *testing.T) {
	t.Parallel()
	ready := []work.Candidate{{ID: "a"}, {ID: "b"}}
	got := work.Plan(work.Snapshot{Slots: 1, Projects: []work.Load{
		{ID: "large", Weight: 19, MaxRuns: 2, Done: 10, Tokens: 10, Ready: ready}, {ID: "small", Weight: 1, MaxRuns: 2, Tokens: 1000, Ready: ready}}})
	if fmt.Sprint(got) != "[{small a }]" {
		t.Error(got)
	}
}

func TestPlanNeverUsesOneTreeTwice(t *testing.T) {
	t.Parallel()
	got := work.Plan(work.Snapshot{Slots: 9, Busy: []string{"x"}, Projects: []work.Load{{ID: "p", Weight: 1, MaxRuns: 9, Ready: []work.Candidate{
		{ID: "a", Tree: "x"}, {ID: "b", Tree: "y"}, {ID: "c", Tree: "y"}, {ID: "d"}}}}})
	if fmt.Sprint(got) != "[{p b } {p d }]" {
		t.Error(got)
	}
}

func TestPlanKeepsEveryLimit(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := work.Snapshot{Slots: r.IntN(8), Paused: r.IntN(20) == 0, Limit: int64(r.IntN(3) * 1000), Tokens: int64(r.IntN(2000))}
		for i := range r.IntN(6) {
			p := work.Load{ID: fmt.Sprint("p", i), Weight: r.Float64()*4 - 1, MaxRuns: r.IntN(4), Running: r.IntN(3), Tokens: int64(r.IntN(500)), Limit: int64(r.IntN(2) * 250), Done: r.IntN(2)}
			for j := range r.IntN(5) {
				p.Ready = append(p.Ready, work.Candidate{ID: fmt.Sprint(p.ID, "-", j), Priority: r.IntN(3)})
			}
			s.Projects = append(s.Projects, p)
		}
		got := work.Plan(s)
		if len(got) > s.Slots || len(got) > 0 && (s.Paused || s.Limit > 0 && s.Tokens >= s.Limit) {
			t.Fatalf("seed %d: %v of %+v", seed, got, s)
		}
		open := 0
		for _, p := range s.Projects {
			given := 0
			seen := map[string]bool{}
			for _, a := range got {
				if a.Project == p.ID {
					given++
					if seen[a.Task] || !slices.ContainsFunc(p.Ready, func(c work.Candidate) bool { return c.ID == a.Task }) {
						t.Fatalf("seed %d: %v", seed, got)
					}
					seen[a.Task] = true
				}
			}
			room := min(len(p.Ready), max(0, p.MaxRuns-p.Running))
			if p.Limit > 0 && p.Tokens >= p.Limit {
				room = 0
			}
			if given > room {
				t.Fatalf("seed %d: %s got %d, has room for %d", seed, p.ID, given, room)
			}
			open += room
		}
		if !s.Paused && (s.Limit == 0 || s.Tokens < s.Limit) && len(got) != min(s.Slots, open) {
			t.Fatalf("seed %d: a worker stays idle: %d of %d, room for %d", seed, len(got), s.Slots, open)
		}
		if again := work.Plan(s); !slices.Equal(got, again) {
			t.Fatalf("seed %d: decided otherwise the second time", seed)
		}
	}
}

// seeds is how many random cases there are: fewer where each takes ten times as long, which finds no race, since nothing runs at once.
func seeds(n uint64) uint64 {
	if raceDetector {
		return n / 5
	}
	return n
}

// Over a thousand tasks of varying cost each project gets its share of the tokens, within five percent of all.
func TestSharesConverge(t *testing.T) {
	t.Parallel()
	for seed := range seeds(20) {
		r := rand.New(rand.NewPCG(seed, 7))
		projects := []work.Load{{ID: "a", Weight: 5}, {ID: "b", Weight: 3}, {ID: "c", Weight: 1}, {ID: "d", Weight: 1}}
		type running struct {
			project int
			cost    int64
		}
		var on []running
		for finished := 0; finished < 1000; {
			for i := range projects {
				projects[i].MaxRuns, projects[i].Ready = 4, nil
				for j := range 5 {
					projects[i].Ready = append(projects[i].Ready, work.Candidate{ID: fmt.Sprint(projects[i].ID, finished, j)})
				}
			}
			for _, a := range work.Plan(work.Snapshot{Slots: 6 - len(on), Projects: projects}) {
				i := int(a.Project[0] - 'a')
				projects[i].Running++
				on = append(on, running{i, 2000 + r.Int64N(16000)})
			}
			k := r.IntN(len(on))
			p := &projects[on[k].project]
			p.Running--
			p.Tokens += on[k].cost
			p.Done++
			p.Mean = p.Tokens / int64(p.Done)
			on = slices.Delete(on, k, k+1)
			finished++
		}
		all := int64(0)
		for _, p := range projects {
			all += p.Tokens
		}
		for _, p := range projects {
			if got, want := float64(p.Tokens)/float64(all), p.Weight/10; math.Abs(got-want) > 0.05 {
				t.Errorf("seed %d: %s has %.3f of the tokens, its share is %.3f", seed, p.ID, got, want)
			}
		}
	}
}

func TestThreeFailuresBlock(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	task := work.Task{State: work.InProgress, MaxRetries: 3}
	var said []string
	for range 3 {
		task.Attempt++
		c := work.Ended(task, chat.RunEnded{Reason: chat.EndFailed, Error: &chat.Failure{Kind: "network", Message: "cut off"}}, now)
		task.Retries = c.Retries
		to, err := work.Next(task.State, c.Step)
		if err != nil {
			t.Fatal(err)
		}
		said = append(said, fmt.Sprint(to, c.Retries, c.NotBefore.Sub(now) > 0, " ", c.Why))
	}
	if got := strings.Join(said, ", "); got != "READY1 true cut off, READY2 true cut off, BLOCKED3 false cut off" {
		t.Error(got)
	}
}

func TestWhatRunsEndLeadsTo(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	for _, c := range []struct {
		end  chat.RunEnded
		to   work.State
		wait time.Duration
		cost int // retries
	}{
		{chat.RunEnded{Reason: chat.EndDone}, work.Verifying, 0, 0},
		{chat.RunEnded{Reason: chat.EndAborted}, work.Blocked, 0, 0},
		{chat.RunEnded{Reason: chat.EndDenied}, work.Blocked, 0, 0},
		{chat.RunEnded{Reason: chat.EndBudget}, work.Paused, time.Minute, 0},
		{chat.RunEnded{Reason: chat.EndFailed, Error: &chat.Failure{Kind: "rate_limit"}}, work.Paused, time.Minute, 0},
		{chat.RunEnded{Reason: chat.EndLimit}, work.Ready, 5 * time.Second, 1},
		{chat.RunEnded{Reason: chat.EndFailed}, work.Ready, 5 * time.Second, 1},
	} {
		got := work.Ended(work.Task{State: work.InProgress, MaxRetries: 3, Attempt: 1}, c.end, now)
		to, err := work.Next(work.InProgress, got.Step)
		wait := time.Duration(0)
		if !got.NotBefore.IsZero() {
			wait = got.NotBefore.Sub(now)
		}
		if err != nil || to != c.to || wait != c.wait || got.Retries != c.cost {
			t.Errorf("%+v: %s after %s, %d retries, %v", c.end, to, wait, got.Retries, err)
		}
	}
	if work.Backoff(time.Minute, 3) != 4*time.Minute || work.Backoff(time.Minute, 100) != 5*time.Minute {
		t.Error("waits double, up to five minutes")
	}
}

func TestForeignErrorsAreSortedByWholeWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]work.ErrorKind{
		"the author configured a token counter":    work.ErrorUnexpected,
		"Error 429: slow down":                     work.ErrorRateLimit,
		"API Error: Rate limit reached":            work.ErrorRateLimit,
		`{"type":"authentication_error"}`:          work.ErrorAuth,
		"Your credit balance is too low":           work.ErrorBudget,
		"request timed out after 60s":              work.ErrorTimeout,
		"bash: ./x: Permission denied":             work.ErrorDenied,
		"panic: runtime error: index out of range": work.ErrorUnexpected,
	} {
		if got := work.KindOfOutput(text); got != want {
			t.Errorf("%q is %s", text, got)
		}
	}
	if work.ErrorKind("?").Title() == "" || work.ErrorAuth.Fix() == "" {
		t.Error("every kind says what to do")
	}
}

func TestCyclesAreFound(t *testing.T) {
	t.Parallel()
	needs := map[string][]string{"c": {"b"}, "b": {"a"}, "x": {"y"}, "y": nil}
	of := func(task string) ([]string, error) { return needs[task], nil }
	if path, err := work.Cycle("a", []string{"x", "c"}, of); err != nil || (&work.CycleError{Path: path}).Error() != "these tasks would wait for each other: a → c → b → a. Leave out one of the dependencies" {
		t.Error(path, err)
	}
	if path, err := work.Cycle("a", []string{"a"}, of); err != nil || len(path) != 2 {
		t.Error("a task cannot need itself", path, err)
	}
	if path, err := work.Cycle("d", []string{"c", "x"}, of); err != nil || path != nil {
		t.Error(path, err)
	}
}

func TestStuckFollowsOnlyTasksThatWait(t *testing.T) {
	t.Parallel()
	dependents := map[string][]work.Task{
		"b":  {{ID: "c1", State: work.Defined}, {ID: "done", State: work.Completed}},
		"c1": {{ID: "c2", State: work.Defined}, {ID: "b", State: work.Blocked}}, "done": {{ID: "c3", State: work.Defined}},
	}
	got, err := work.Stuck("b", func(id string) ([]work.Task, error) { return dependents[id], nil })
	if err != nil || len(got) != 2 || got[0].ID != "c1" || got[1].ID != "c2" {
		t.Error(got, err)
	}
}

func TestNamesBecomeIDs(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"My Web App": "my-web-app", " a__b  c ": "a-b-c", "../../etc": "etc", "Don't": "dont", "Größe 2": "größe-2"} {
		if got, err := work.IDOf(name); err != nil || got != want {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
	if _, err := work.IDOf("../.."); err == nil {
		t.Error("a name of nothing has an id")
	}
	for title, want := range map[string]string{"x.md": "x.md", "Release Plan": "release-plan.md", "../secret": "secret.md"} {
		if got, err := work.NoteFile(title); err != nil || got != want {
			t.Errorf("%q: %q, %v", title, got, err)
		}
	}
	if _, err := work.NoteFile("!!!"); err == nil || !strings.HasPrefix(err.Error(), "Title produces an empty filename") {
		t.Error(err)
	}
}

func FuzzNamesLeadNowhereElse(f *testing.F) {
	f.Add("../../x")
	f.Add("a\x00b\n")
	f.Add(strings.Repeat("ä", 500))
	safe := regexp.MustCompile(`^[\p{L}\p{Nd}]+(-[\p{L}\p{Nd}]+)*$`)
	f.Fuzz(func(t *testing.T, name string) {
		id, err := work.IDOf(name)
		if err != nil {
			return
		}
		if !safe.MatchString(id) || len(id) > 64 {
			t.Fatalf("%q became %q", name, id)
		}
		if again, err := work.IDOf(id); err != nil || again != id {
			t.Fatalf("%q became %q and then %q", name, id, again)
		}
	})
}

func TestTaskIDsEnd(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	seen := map[string]bool{}
	for range 20_000 {
		tries := 0
		for {
			id := work.TaskID(r, tries)
			if tries++; !seen[id] {
				seen[id] = true
				break
			}
			if tries > 200 {
				t.Fatal("no free id")
			}
		}
	}
}

// What a dispatcher is told of the place begins as the document says.
func TestContexts(t *testing.T) {
	t.Parallel()
	if got := work.ChannelContext("my-site"); got != "[Context: this is the channel for project `my-site`. Default to using project_id='my-site' for all project-scoped commands.]\n" {
		t.Error(got)
	}
	got := work.NotesContext("my-site")
	for _, want := range []string{"[Context: this is the notes thread for project `my-site`. Default to using notes tools with project_id='my-site'.", "NOTES MODE", "append_note", "Added to {note title}.", "]\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %s", want, got)
		}
	}
}

// However the weights are, a project that has tasks gets on: its share comes to it in the end, and the same snapshot gives the same plan.
func TestNobodyStarves(t *testing.T) {
	t.Parallel()
	for seed := range seeds(100) {
		r := rand.New(rand.NewPCG(seed, 11))
		projects := make([]work.Load, 2+r.IntN(5))
		weights, least := 0.0, math.Inf(1)
		for i := range projects {
			projects[i] = work.Load{ID: string(rune('a' + i)), Weight: 0.2 + 8*r.Float64(), MaxRuns: 1 + r.IntN(3)}
			weights, least = weights+projects[i].Weight, min(least, projects[i].Weight)
		}
		const wanted = 5
		rounds := int(3 * wanted * weights / least)
		slots := 1 + r.IntN(4)
		var on []int
		for range rounds {
			for i := range projects {
				projects[i].Ready = nil
				for j := range 4 {
					projects[i].Ready = append(projects[i].Ready, work.Candidate{ID: fmt.Sprint(projects[i].ID, projects[i].Done, j)})
				}
			}
			s := work.Snapshot{Slots: slots - len(on), Projects: projects}
			plan := work.Plan(s)
			if again := work.Plan(s); !slices.Equal(plan, again) {
				t.Fatalf("seed %d: %v, then %v", seed, plan, again)
			}
			for _, a := range plan {
				i := int(a.Project[0] - 'a')
				projects[i].Running++
				on = append(on, i)
			}
			k := r.IntN(len(on))
			p := &projects[on[k]]
			p.Running, p.Done, p.Tokens = p.Running-1, p.Done+1, p.Tokens+500+r.Int64N(1000)
			p.Mean = p.Tokens / int64(p.Done)
			on = slices.Delete(on, k, k+1)
		}
		for _, p := range projects {
			if p.Done < wanted {
				t.Errorf("seed %d: of %d tasks %s has done %d, its weight is %.2f of %.2f", seed, rounds, p.ID, p.Done, p.Weight, weights)
			}
		}
	}
}
