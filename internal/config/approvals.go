package config

import (
	"fmt"
	"time"

	"chorus/internal/pattern"
)

// HowLong parses 90s, 15m or 24h; none and 0 mean zero.
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

// answerers matches the values of approvals.by.
var answerers = pattern.Lazy(`^\s*(?:two|(?:two of\s+)?(?:asker|local|anyone|role:[^,\s][^,]*)(?:\s*,\s*(?:asker|local|anyone|role:[^,\s][^,]*))*)\s*$`)

// Asked returns the deadline, remind or by value for asking people under a profile. set
// reports whether somebody set it, for the profile or for all.
func (b *Bot) Asked(profile, what string) (value string, set bool) {
	for _, name := range b.merged.names("approvals.profiles") {
		if unescape(name) != profile {
			continue
		}
		if l := b.merged.get("approvals.profiles." + name + "." + what); l != nil {
			return l.value.text, true
		}
	}
	return map[string]string{"deadline": b.ApprovalsDeadline, "remind": b.ApprovalsRemind, "by": b.ApprovalsBy}[what], b.IsSet("approvals." + what)
}

// approvals checks the values about asking people.
func (b *Bot) approvals(r *report) {
	places := []string{"approvals."}
	for _, name := range b.merged.names("approvals.profiles") {
		places = append(places, "approvals.profiles."+name+".")
	}
	for _, place := range places {
		for _, what := range []string{"deadline", "remind", "by"} {
			l := b.merged.get(place + what)
			if l == nil {
				continue
			}
			if why := wrongAsking(what, l.value.text); why != "" {
				r.fail(b.Origin(place+what), place+what, "%s %s", shownPath(place+what), why)
			}
		}
	}
}

func wrongAsking(what, text string) string {
	if what != "by" {
		if _, err := HowLong(text); err != nil {
			return err.Error()
		}
		return ""
	}
	if text != "" && !answerers().MatchString(text) {
		return fmt.Sprintf("must name asker, local, anyone or role:NAME, several with commas, \"two of\" before them or two alone, not %q", text)
	}
	return ""
}
