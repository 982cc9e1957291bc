package work_test

import (
	"strings"
	"testing"
	"time"

	"chorus/internal/work"
)

func TestRemindersComeOnceAndThenEscalate(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	r := work.Reminders{Every: time.Hour, Escalate: 24 * time.Hour}
	task := work.Task{ID: "calm-otter", Title: "Dark mode", State: work.AwaitingApproval, Moved: begin}
	var said []string
	for now := begin; !now.After(begin.Add(49 * time.Hour)); now = now.Add(time.Minute) {
		for range 2 { // whoever looks twice says it once
			if e, due := r.Remind(&task, "system:queue", now); due {
				said = append(said, strings.TrimPrefix(e.Type, "task.")+" "+now.Sub(begin).String())
			}
		}
	}
	if len(said) != 23+2 || said[0] != "approval_reminder 1h0m0s" || said[22] != "approval_reminder 23h0m0s" || said[23] != "approval_stuck 24h0m0s" || said[24] != "approval_stuck 48h0m0s" {
		t.Errorf("%d: %q", len(said), said)
	}
}

func TestRemindersAfterALongSleep(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	r := work.Reminders{Every: time.Hour, Escalate: 24 * time.Hour}
	task := work.Task{State: work.AwaitingPlanApproval, Moved: begin, Title: "Dark mode", Reminded: begin.Add(-time.Hour)} // of an earlier attempt
	e, due := r.Remind(&task, "", begin.Add(25*time.Hour))
	if !due || e.Type != work.EventStuck || !strings.Contains(e.Text, "Stuck task") || !strings.Contains(e.Text, "25h") {
		t.Errorf("%+v", e)
	}
	if next := r.Next(task); !next.Equal(begin.Add(49 * time.Hour)) {
		t.Errorf("the next one is at %s", next)
	}
	for what, c := range map[string]struct {
		r    work.Reminders
		task work.Task
		next time.Duration
	}{
		"never":           {work.Reminders{}, work.Task{State: work.AwaitingApproval, Moved: begin}, -1},
		"only reminders":  {work.Reminders{Every: time.Minute}, work.Task{State: work.AwaitingApproval, Moved: begin, Reminded: begin.Add(30 * time.Hour)}, 30*time.Hour + time.Minute},
		"only escalation": {work.Reminders{Escalate: time.Minute}, work.Task{State: work.AwaitingApproval, Moved: begin}, time.Minute},
		"nobody is asked": {r, work.Task{State: work.Ready, Moved: begin}, -1},
	} {
		want := begin.Add(c.next)
		if c.next < 0 {
			want = time.Time{}
		}
		if got := c.r.Next(c.task); !got.Equal(want) {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
}
