package config

import (
	"strings"
	"testing"
	"time"
)

func TestHowLong(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"24h": 24 * time.Hour, "90s": 90 * time.Second, "none": 0, "": 0, "0": 0} {
		if got, err := HowLong(text); err != nil || got != want {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"soon", "-1h", "24", "1 day"} {
		if got, err := HowLong(text); err == nil {
			t.Errorf("%q was read as %v", text, got)
		}
	}
}

func TestApprovals(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"approvals: 2h": "",
		"approvals: {deadline: none, remind: 10m}":        "",
		"approvals: {by: two}":                            "",
		`approvals: {by: "two of role:a b, asker"}`:       "",
		"approvals: {deadline: soon}":                     `approvals.deadline must be a time such as 90s, 15m or 24h, or none, not "soon"`,
		"approvals: {remind: -1h}":                        `approvals.remind must be a time`,
		"approvals: {by: everybody}":                      `approvals.by must name`,
		`approvals: {by: "two asker"}`:                    `approvals.by must name`,
		"approvals: {profiles: {open: {deadline: soon}}}": `approvals.profiles.open.deadline must be a time`,
		`approvals: {by: "role:"}`:                        `approvals.by must name`,
	} {
		b, problems := loose(t, text)
		r := &report{found: problems}
		b.approvals(r)
		err := r.found.Err()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", text, err)
		}
	}
	b, _ := loose(t, "approvals: {remind: 5m, profiles: {open: {by: two}, my.own: 2h}}")
	for _, c := range []struct {
		profile, what, want string
		set                 bool
	}{
		{"open", "by", "two", true}, {"open", "remind", "5m", true}, {"open", "deadline", "24h", false},
		{"my.own", "deadline", "2h", true}, {"other", "by", "asker, local", false},
	} {
		if got, set := b.Asked(c.profile, c.what); got != c.want || set != c.set {
			t.Errorf("%s under %s is %q, %v", c.what, c.profile, got, set)
		}
	}
	b, _ = loose(t, "")
	if b.ApprovalsDeadline != "24h" || b.ApprovalsRemind != "1h" || b.IsSet("approvals.deadline") {
		t.Errorf("the defaults are %q and %q", b.ApprovalsDeadline, b.ApprovalsRemind)
	}
}
