package config

import (
	"fmt"
	"regexp"
	"time"
)

// HowLong reads 90s, 15m or 24h; none and 0 are no time at all.
func HowLong(text string) (time.Duration, error) {
	if text == "none" || text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("must be a time such as 90s, 15m or 24h, or none, not %q", text)
	}
	return d, nil
}

// answerers is how approvals.by is written.
var answerers = regexp.MustCompile(`^\s*(?:two|(?:two of\s+)?(?:asker|local|anyone|role:[^,\s][^,]*)(?:\s*,\s*(?:asker|local|anyone|role:[^,\s][^,]*))*)\s*$`)

// approvals holds what was written about asking people to its form.
func (b *Bot) approvals(r *report) {
	for path, text := range map[string]string{"approvals.deadline": b.ApprovalsDeadline, "approvals.remind": b.ApprovalsRemind} {
		if _, err := HowLong(text); err != nil {
			r.fail(b.Origin(path), path, "%s %s", path, err)
		}
	}
	if b.ApprovalsBy != "" && !answerers.MatchString(b.ApprovalsBy) {
		r.fail(b.Origin("approvals.by"), "approvals.by",
			"approvals.by must name asker, local, anyone or role:NAME, several with commas, \"two of\" before them or two alone, not %q", b.ApprovalsBy)
	}
}
