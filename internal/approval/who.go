package approval

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"chorus/internal/chat"
)

// DefaultWho is the default rule: whoever asked, and whoever is at this machine's own terminal.
const DefaultWho = "asker, local"

// ErrMayNot is returned to somebody whose answer does not count.
var ErrMayNot = errors.New("may not answer")

// Who is a rule about who may answer an approval.
type Who struct {
	Two    bool // two different people must approve
	Anyone bool // any person
	Asker  bool // whoever asked
	Local  bool // whoever is at the terminal
	Roles  []string
}

// ParseWho reads a rule: "asker", "local", "anyone", "role:NAME", or several of
// them separated by commas. "two" before them ("two of role:admin"), or alone,
// means that two different people must approve.
func ParseWho(text string) (Who, error) {
	if text = strings.TrimSpace(text); text == "" {
		text = DefaultWho
	}
	var w Who
	rest := text
	if rest == "two" {
		return Who{Two: true, Anyone: true}, nil
	}
	if after, ok := strings.CutPrefix(rest, "two of "); ok {
		w.Two, rest = true, after
	}
	for part := range strings.SplitSeq(rest, ",") {
		part = strings.TrimSpace(part)
		role, isRole := strings.CutPrefix(part, "role:")
		switch {
		case part == "anyone":
			w.Anyone = true
		case part == "asker":
			w.Asker = true
		case part == "local":
			w.Local = true
		case isRole && role != "":
			w.Roles = append(w.Roles, role)
		default:
			return Who{}, fmt.Errorf("%q does not say who may answer; there are asker, local, anyone, role:NAME, lists of them with commas, and \"two of\" before any", part)
		}
	}
	return w, nil
}

// String returns the rule as people write it.
func (w Who) String() string {
	var parts []string
	for _, p := range []struct {
		in   bool
		name string
	}{{w.Anyone, "anyone"}, {w.Asker, "asker"}, {w.Local, "local"}} {
		if p.in {
			parts = append(parts, p.name)
		}
	}
	for _, r := range w.Roles {
		parts = append(parts, "role:"+r)
	}
	text := strings.Join(parts, ", ")
	switch {
	case w.Two && text == "anyone":
		return "two"
	case w.Two:
		return "two of " + text
	}
	return text
}

// MayAnswer reports whether a principal's answer counts, and if not, why. Only people may answer:
// never an agent, whether it is the one that asks or another, and nothing that runs by itself.
func MayAnswer(rule Who, a Approval, p chat.Principal) (bool, string) {
	if !isPerson(p) {
		return false, "only people can answer"
	}
	asked := a.AskedBy.Person().String() // what a schedule asks for, its owner asked for
	if rule.Anyone || rule.Asker && p.String() == asked || rule.Local && p.Owns() {
		return true, ""
	}
	for _, role := range rule.Roles {
		if slices.Contains(p.Roles, role) {
			return true, ""
		}
	}
	return false, fmt.Sprintf("%s may not answer this; the rule is %s", p, rule)
}

// isPerson reports whether a principal is a person.
func isPerson(p chat.Principal) bool {
	return p.ID != "" && (p.Kind == chat.LocalUser || p.Kind == chat.TokenHolder || p.Kind.OnPlatform())
}

// Weigh returns the state of an approval after a principal's answer: Approved, Refused, or
// still Open because a second person must approve. A single no refuses it.
func Weigh(a Approval, p chat.Principal, ok bool) (State, error) {
	rule, err := ParseWho(a.Who)
	if err != nil {
		return Open, fmt.Errorf("%w: %w", ErrMayNot, err)
	}
	if may, why := MayAnswer(rule, a, p); !may {
		return Open, fmt.Errorf("%w: %s", ErrMayNot, why)
	}
	if !ok {
		return Refused, nil
	}
	if !rule.Two {
		return Approved, nil
	}
	for _, v := range a.Votes {
		if v.OK && samePerson(v.By, p) {
			return Open, fmt.Errorf("%w: %s has already approved; another person must approve too", ErrMayNot, p)
		}
	}
	for _, v := range a.Votes {
		if may, _ := MayAnswer(rule, a, v.By); v.OK && may {
			return Approved, nil
		}
	}
	return Open, nil
}

// samePerson reports whether two principals are one person, as far as is known:
// whoever is at the terminal also has the owner's token.
func samePerson(p, q chat.Principal) bool {
	return p.String() == q.String() || p.Owns() && q.Owns() && (p.Kind != chat.LocalUser || q.Kind != chat.LocalUser)
}

// NeedsTwo reports whether one person's approval is not enough.
func (a Approval) NeedsTwo() bool {
	rule, err := ParseWho(a.Who)
	return err != nil || rule.Two
}
