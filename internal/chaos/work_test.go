package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"chorus/internal/polltest"
)

// soakTasks is how many tasks the short soak has; CHORUS_SOAK says how many for the long one.
const soakTasks = 15

// soakWorkers is how many tasks are worked on at once: two by the server, two by each of two other processes.
const soakWorkers = 6

// TestSoakWork gives three projects tasks that need each other, and kills the server and other workers, stops tasks, lets them fail and lets them meet in one
// file while six workers in three processes are at them. A person answers what a person would. In the end every task is completed, and what it changed is on
// its project's branch exactly once.
func TestSoakWork(t *testing.T) {
	t.Parallel() // it waits for most of its time
	tasks, kills := soakTasks, 2
	if n, err := strconv.Atoi(os.Getenv("CHORUS_SOAK")); err == nil {
		tasks, kills = n, n/6
	} else if testing.Short() {
		t.Skip("it takes half a minute")
	}
	seed, err := strconv.ParseUint(os.Getenv("CHORUS_CHAOS_SEED"), 10, 64)
	if err != nil {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("CHORUS_CHAOS_SEED=%d", seed)
	s := newSoak(t, rand.New(rand.NewPCG(seed, 17)), kills)
	for n := range tasks {
		s.add(n)
	}
	s.work()
	s.cleaned()
	s.hold()
	s.stop()
	t.Logf("%d tasks, %d kills, %d stops, %d conflicts, %d skipped", len(s.tasks), s.killed, s.stopped, s.conflicts, s.skipped)
}

// soak is a server with projects, and what a person knows of their tasks.
type soak struct {
	*served
	random   *rand.Rand
	projects []*soakProject
	tasks    []*soakTask
	byID     map[string]*soakTask

	workers [2]*exec.Cmd

	kills, killed, stopped, conflicts, skipped int
	nextKill                                   time.Time
	late                                       time.Time
}

// soakProject is a project whose work ends up on the branch main of git.
type soakProject struct {
	id, git string
	tasks   []*soakTask
}

// soakTask is a task: what it is for decides how it goes.
type soakTask struct {
	n       int
	project *soakProject
	kind    string
	needs   []*soakTask
	id      string

	status, why string
	held        int  // looks since it was stopped, in which it must stay BLOCKED
	stoppedOnce bool // by us
	reopened    bool
	wasSkipped  bool
}

// The kinds of tasks, as often as they stand here.
var soakKinds = []string{"file", "file", "file", "commit", "commit", "shared", "shared", "nothing", "approve", "fails", "flaky", "slow"}

func newSoak(t *testing.T, random *rand.Rand, kills int) *soak {
	t.Helper()
	s := &soak{served: newServed(t, ""), random: random, byID: map[string]*soakTask{}, kills: kills, late: time.Now().Add(soakTime(kills))}
	s.sandbox = "" // workers are kept to their own branches
	shared := fmt.Sprintf("permissions: open\nworkers: %d\n", soakWorkers/3)
	if err := os.WriteFile(filepath.Join(s.home, "config/shared.yaml"), []byte(shared), 0o600); err != nil {
		t.Fatal(err)
	}
	s.start()
	s.must("POST", "/api/agents", map[string]any{"name": "worker", "model": "demo/script", "permissions": "open", "systemPrompt": "You work."}, nil)
	link, remote := filepath.Join(filepath.Dir(s.home), "link"), filepath.Join(filepath.Dir(s.home), "remote.git")
	for _, args := range [][]string{
		{"init", "-q", "-b", "main", link},
		{"-C", link, "-c", "user.name=Ada", "-c", "user.email=ada@example.org", "commit", "-q", "--allow-empty", "-m", "begin"},
		{"clone", "-q", "--bare", link, remote},
	} {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	for i, repo := range []map[string]any{{"source": "link", "path": link}, {"source": "clone", "url": remote}, {"source": "init", "name": "fresh"}} {
		var made struct{ ID, Path string }
		s.must("POST", "/api/projects", map[string]any{"name": fmt.Sprint("Project ", i), "creditWeight": i + 1, "maxConcurrentAgents": 4}, &made)
		p := &soakProject{id: made.ID, git: map[int]string{0: link, 1: remote}[i]}
		repo["projectId"] = p.id
		s.must("POST", "/api/repos", repo, &made)
		if p.git == "" {
			p.git = made.Path
		}
		s.projects = append(s.projects, p)
	}
	s.planKill()
	t.Cleanup(s.dismiss)
	return s
}

// soakTime is what a soak may take; what is not done then is stuck.
func soakTime(kills int) time.Duration { return 4*time.Minute + time.Duration(kills)*time.Minute }

// ask sends a request until somebody answers; a server that is down is started.
func (s *soak) ask(method, path string, body any, key string) (int, string) {
	s.t.Helper()
	for {
		if s.process == nil {
			s.start()
		}
		if time.Now().After(s.nextKill) && s.killed < s.kills {
			s.killed++
			s.planKill()
			dying := s.process.Process
			if w := s.workers[s.random.IntN(len(s.workers))]; w != nil && s.random.IntN(2) == 0 {
				dying = w.Process
			}
			time.AfterFunc(time.Duration(s.random.IntN(3000))*time.Microsecond, func() { // some moment during the request
				_ = dying.Signal(syscall.SIGKILL) // it may be gone
			})
		}
		status, text := s.call(method, path, body, "Idempotency-Key", key)
		if status != 0 {
			if status >= 500 {
				s.t.Fatalf("%s %s: %d %s\n%s", method, path, status, text, s.log)
			}
			return status, text
		}
		s.kill()
	}
}

// employ starts the workers that are not there.
func (s *soak) employ() {
	s.t.Helper()
	for i, w := range s.workers {
		if w != nil && syscall.Kill(w.Process.Pid, 0) == nil {
			continue
		}
		w = s.command(context.Background(), nil, "worker", "--slots", strconv.Itoa(soakWorkers/3), "--name", fmt.Sprint("worker-", i))
		w.Stdout, w.Stderr = s.log, s.log
		if err := w.Start(); err != nil {
			s.t.Fatal(err)
		}
		go func() { _ = w.Wait() }() // it is killed, or dismissed
		s.workers[i] = w
	}
}

// dismiss ends the other workers.
func (s *soak) dismiss() {
	for _, w := range s.workers {
		if w != nil {
			_ = w.Process.Kill() // it may be gone
			polltest.Soon(func() bool { return syscall.Kill(w.Process.Pid, 0) != nil })
		}
	}
}

func (s *soak) planKill() {
	s.nextKill = time.Now().Add(time.Duration(500+s.random.IntN(5000)) * time.Millisecond)
}

// must is ask where a request must be taken.
func (s *soak) must(method, path string, body, out any) {
	s.t.Helper()
	status, text := s.ask(method, path, body, fmt.Sprintf("%s %s %d", method, path, s.random.Uint64()))
	if status >= 300 {
		s.t.Fatalf("%s %s: %d %s", method, path, status, text)
	}
	if out != nil {
		if err := json.Unmarshal([]byte(text), out); err != nil {
			s.t.Fatalf("%s %s: %v in %s", method, path, err, text)
		}
	}
}

// add creates a task that needs up to three earlier ones of its project.
func (s *soak) add(n int) {
	s.t.Helper()
	p := s.projects[n%len(s.projects)]
	k := &soakTask{n: n, project: p, kind: soakKinds[s.random.IntN(len(soakKinds))]}
	needs := []string{}
	for range s.random.IntN(4) {
		if len(p.tasks) == 0 {
			break
		}
		need := p.tasks[s.random.IntN(len(p.tasks))]
		k.needs, needs = append(k.needs, need), append(needs, need.id)
	}
	var made struct{ ID string }
	s.must("POST", "/api/tasks", map[string]any{"title": fmt.Sprintf("%s %d", k.kind, n), "description": k.script(), "projectId": p.id, "agent": "worker",
		"dependsOn": needs, "requiresApproval": k.kind == "approve", "maxRetries": 2, "priority": 1 + s.random.IntN(200)}, &made)
	k.id, s.byID[made.ID] = made.ID, k
	s.tasks, p.tasks = append(s.tasks, k), append(p.tasks, k)
}

// script is what the offline model does for it.
func (k *soakTask) script() string {
	bash := func(command string) string {
		data, err := json.Marshal(map[string]string{"command": command})
		if err != nil {
			panic(err)
		}
		return "!call bash " + string(data) + "\n!---\n"
	}
	file := fmt.Sprintf("!call write {\"path\":\"file-%d.txt\",\"content\":\"%d\\n\"}\n!---\n", k.n, k.n)
	switch k.kind {
	case "commit":
		return file + bash(fmt.Sprintf("git add -A && git -c user.name=Worker -c user.email=w@example.org commit -q -m own-%d", k.n)) + "!say committed\n"
	case "shared":
		return file + bash(fmt.Sprintf("echo %d > shared.txt", k.n)) + "!say wrote what others write too\n"
	case "nothing":
		return "!say there is nothing to change\n"
	case "fails":
		return file + "!fail bad_request\n"
	case "flaky": // its provider has a bad moment
		return file + "!fail overloaded retry-after 100ms once\n!say at last\n"
	case "slow": // until somebody stops it, or the server is killed
		return bash(fmt.Sprintf("test -e begun-%d || { touch begun-%d; sleep %d.25; }", k.n, k.n, 40000+k.n)) + file + "!say slept\n"
	default:
		return file + "!say written\n"
	}
}

// work looks at the tasks and does what a person would, until all are completed.
func (s *soak) work() {
	s.t.Helper()
	for {
		s.employ()
		s.look()
		open := 0
		for _, k := range s.tasks {
			if k.status != "COMPLETED" {
				open++
				s.answer(k)
			}
		}
		if open == 0 {
			return
		}
		if time.Now().After(s.late) {
			s.t.Fatalf("%d tasks do not get done:\n%s\n%s", open, s.open(), s.log)
		}
		time.Sleep(100 * time.Millisecond) // a person looks now and then
	}
}

// look reads how all tasks stand.
func (s *soak) look() {
	s.t.Helper()
	seen := map[string]bool{}
	for cursor := ""; ; {
		status, text := s.ask("GET", "/api/tasks?includeCompleted=true&limit=200&cursor="+cursor, nil, "")
		var page struct {
			Items []struct{ ID, Status, Why string }
			Next  string
		}
		if status != http.StatusOK || json.Unmarshal([]byte(text), &page) != nil {
			s.t.Fatalf("no list of tasks: %d %s", status, text)
		}
		for _, row := range page.Items {
			k := s.byID[row.ID]
			if k == nil {
				s.t.Fatalf("task %s was made twice or by nobody", row.ID)
			}
			seen[row.ID] = true
			k.status, k.why = row.Status, row.Why
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	for _, k := range s.tasks {
		if !seen[k.id] {
			s.t.Fatalf("task %s is lost", k.id)
		}
	}
	var running struct{ Items []struct{ ID string } } // in one look: between two pages things move
	status, text := s.ask("GET", "/api/tasks?status=IN_PROGRESS&limit=200", nil, "")
	if status != http.StatusOK || json.Unmarshal([]byte(text), &running) != nil {
		s.t.Fatalf("no list of running tasks: %d %s", status, text)
	}
	if n := len(running.Items); n > soakWorkers {
		s.t.Errorf("%d tasks are worked on at once, with %d workers", n, soakWorkers)
	}
}

// answer does what a person would about a task.
func (s *soak) answer(k *soakTask) {
	s.t.Helper()
	do := func(what string, body any) bool {
		status, text := s.ask("POST", "/api/tasks/"+k.id+"/"+what, body, "")
		if status >= 400 && status != http.StatusConflict { // it may have moved meanwhile
			s.t.Errorf("%s %s: %d %s", what, k.id, status, text)
		}
		return status < 300
	}
	if k.held > 0 {
		if k.status != "BLOCKED" {
			s.t.Errorf("task %s was stopped and is %s again", k.id, k.status)
		}
		if k.held++; k.held > 10 {
			s.gone(k)
			if do("restart", nil) {
				k.held = 0
			}
		}
		return
	}
	switch k.status {
	case "IN_PROGRESS":
		if !k.stoppedOnce && (k.kind == "slow" || s.random.IntN(40) == 0) && do("stop", nil) {
			k.stoppedOnce, k.held = true, 1
			s.stopped++
		}
	case "AWAITING_APPROVAL":
		do("approve", nil)
	case "BLOCKED", "FAILED":
		switch {
		case k.why == "":
			s.t.Errorf("task %s is %s and does not say why", k.id, k.status)
		case strings.HasPrefix(k.why, "merge conflict") && !k.reopened:
			s.conflicts++
			k.reopened = do("reopen", map[string]string{"feedback": "Take in what others did.\n!call bash {\"command\":\"git merge -q --no-edit -X ours main || git merge -q --no-edit -X ours origin/main\"}\n!---\n!say merged\n"})
		case do("skip", nil):
			k.wasSkipped = true
			s.skipped++
		}
	}
}

// gone waits until nothing of a stopped task runs any more.
func (s *soak) gone(k *soakTask) {
	s.t.Helper()
	if k.kind != "slow" {
		return
	}
	mark := fmt.Sprintf("%d.25", 40000+k.n)
	out, _ := exec.Command("pgrep", "-f", "sleep "+mark).Output() // nothing found is what is wanted
	if len(bytes.TrimSpace(out)) > 0 {
		s.t.Errorf("task %s was stopped and its command still runs", k.id)
	}
}

// open lists the tasks that are not completed.
func (s *soak) open() string {
	var b strings.Builder
	for _, k := range s.tasks {
		if k.status != "COMPLETED" {
			fmt.Fprintf(&b, "%s %s %d %s: %s\n", k.id, k.kind, k.n, k.status, k.why)
		}
	}
	return b.String()
}

// cleaned waits until no branch of a task is left.
func (s *soak) cleaned() {
	s.t.Helper()
	for _, p := range s.projects {
		if !polltest.Soon(func() bool { return strings.TrimSpace(s.git(p, "branch", "--format=%(refname:short)")) == "main" }) {
			s.t.Fatalf("more than main is left in %s:\n%s%s", p.git, s.git(p, "branch", "--all", "--verbose"), s.git(p, "worktree", "list"))
		}
	}
}

func (s *soak) git(p *soakProject, args ...string) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "git", append([]string{"-C", p.git}, args...)...).Output()
	if err != nil {
		s.t.Errorf("git %s in %s: %v", strings.Join(args, " "), p.git, err)
	}
	return string(out)
}

// hold holds the repositories against what the tasks were to change.
func (s *soak) hold() {
	s.t.Helper()
	for _, p := range s.projects {
		log := s.git(p, "log", "--topo-order", "--format=%s", "main")
		files := s.git(p, "ls-tree", "--name-only", "main")
		for _, k := range p.tasks {
			merges := strings.Count("\n"+log, "\nMerge task "+k.id+": ")
			wantMerges, wantFile := 1, true
			if k.kind == "nothing" || k.wasSkipped {
				wantMerges, wantFile = 0, false
			}
			if merges != wantMerges && !(merges == 0 && s.interrupted(k)) {
				s.t.Errorf("task %s (%s %d, skipped %v) was merged %d times", k.id, k.kind, k.n, k.wasSkipped, merges)
			}
			if there := strings.Contains("\n"+files, fmt.Sprintf("\nfile-%d.txt\n", k.n)); there != wantFile && !(wantFile && s.interrupted(k)) {
				s.t.Errorf("the file of task %s (%s %d, skipped %v) is on main: %v", k.id, k.kind, k.n, k.wasSkipped, there)
			}
			if own := strings.Count("\n"+log, fmt.Sprintf("\nown-%d\n", k.n)); own > 1 { // none: it was interrupted, and what it left was committed for it
				s.t.Errorf("the commit of task %s is on main %d times", k.id, own)
			}
		}
		s.order(p, log)
		if p == s.projects[0] {
			if left := s.git(p, "status", "--porcelain"); left != "" {
				s.t.Errorf("the linked checkout is not clean:\n%s", left)
			}
		}
	}
}

// interrupted reports whether a call of a task was interrupted by a kill: it is not made again, and the offline model does not mind.
func (s *soak) interrupted(k *soakTask) bool {
	s.t.Helper()
	var task struct{ SessionID string }
	s.must("GET", "/api/tasks/"+k.id, nil, &task)
	for _, e := range s.journal(task.SessionID) {
		if e.Kind == "tool_ran" && strings.Contains(string(e.Body), "interrupted") {
			return true
		}
	}
	return false
}

// order holds that what a task needs was merged before it.
func (s *soak) order(p *soakProject, log string) {
	s.t.Helper()
	at := func(k *soakTask) int { return strings.Index("\n"+log, "\nMerge task "+k.id+": ") }
	for _, k := range p.tasks {
		for _, need := range k.needs {
			if mine, its := at(k), at(need); mine >= 0 && its >= 0 && its < mine { // the newest comes first
				s.t.Errorf("task %s was merged before %s, which it needs", k.id, need.id)
			}
		}
	}
}
