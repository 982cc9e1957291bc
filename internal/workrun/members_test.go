package workrun_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/work"
	"chorus/internal/workrun"
)

// TestMembers: a worker is listed from when it joins until it leaves, and two never have one name.
func TestMembers(t *testing.T) {
	t.Parallel()
	m := &workrun.Members{Dir: t.TempDir() + "/workers", Now: time.Now}
	if list, err := m.List(); err != nil || len(list) != 0 {
		t.Fatal(list, err)
	}
	if _, err := m.Join(work.Worker{Name: "../../etc"}); err == nil {
		t.Error("a path became a name")
	}
	one, err := m.Join(work.Worker{Name: "one", Slots: 3, Projects: []string{"site"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Join(work.Worker{Name: "one"}); !errors.Is(err, workrun.ErrNameTaken) {
		t.Errorf("two have one name: %v", err)
	}
	list, err := m.List()
	if err != nil || len(list) != 1 || list[0].Slots != 3 || list[0].Heartbeat.IsZero() || list[0].Draining || !slices.Equal(list[0].Projects, []string{"site"}) {
		t.Errorf("%+v %v", list, err)
	}
	if err := one.Draining(); err != nil {
		t.Fatal(err)
	}
	if list, err := m.List(); err != nil || !list[0].Draining || !m.Alive("one") || m.Alive("two") || m.Alive("") {
		t.Errorf("%+v %v", list, err)
	}
	one.Leave()
	if list, err := m.List(); err != nil || len(list) != 0 || m.Alive("one") {
		t.Errorf("%+v %v", list, err)
	}
}

// TestTakenOver: what a worker that is gone had goes on with another that takes such tasks and has a place, and never with two.
func TestTakenOver(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.Self = work.Worker{Name: "one"}
	task := h.task("Go on", nil)
	h.worker = func(work.Task, string) chat.RunEnded { return chat.RunEnded{} } // it never ends by itself
	h.settle(task.ID, work.InProgress)
	alive := true
	other := h.Runner
	var adopted []chat.ThreadID
	where := h.Home
	h.restart(where)
	h.Self, h.Alive = work.Worker{Name: "two", Projects: []string{"elsewhere"}}, func(string) bool { return alive }
	h.Adopted = func(thread chat.ThreadID) { adopted = append(adopted, thread) }
	round := func(want string) {
		t.Helper()
		if _, err := h.Round(t.Context()); err != nil {
			t.Fatal(err)
		}
		h.Wait()
		if now, err := h.queue.Task(t.Context(), task.ID); err != nil || now.Worker != want || now.Attempt != 1 {
			t.Fatalf("%s has it in attempt %d, not %s: %v", now.Worker, now.Attempt, want, err)
		}
	}
	round("one") // it lives
	alive = false
	round("one") // two takes no tasks of this project
	h.Self.Projects = nil
	h.Workers = 0
	round("one") // two has no place
	h.Workers = 1
	h.Drain()
	round("one") // two stops
	h.restart(where)
	h.Self, h.Alive = work.Worker{Name: "three"}, func(string) bool { return false }
	h.Adopted = func(thread chat.ThreadID) { adopted = append(adopted, thread) }
	round("three")
	if len(adopted) != 1 || adopted[0] != task.Thread {
		t.Errorf("%v", adopted)
	}
	other.Wait()
}
