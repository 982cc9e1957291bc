package permit

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"chorus/internal/text"
)

// Who says on whose behalf, by which agent and where something is to be
// done. Only unrestricted rules apply to the zero value.
type Who struct {
	Roles   []string
	Agent   string
	Channel string
}

// Rule is one rule of a list. Without restrictions it holds for everybody. Otherwise every given
// restriction must include the sender's role, the agent or the channel.
type Rule struct {
	Rule     string   `json:"rule" yaml:"rule"`
	Roles    []string `json:"roles,omitempty" yaml:"roles"`
	Agents   []string `json:"agents,omitempty" yaml:"agents"`
	Channels []string `json:"channels,omitempty" yaml:"channels"`
}

// String returns the form of the rule in the lists of Rules: the pattern alone, or the rule as a JSON
// object. No action begins with a brace, so the two forms cannot be confused.
func (r Rule) String() string {
	if !r.restricted() {
		return r.Rule
	}
	data, err := text.JSON(r)
	if err != nil {
		return r.Rule // strings always encode
	}
	return string(data)
}

// ParseRule parses what String returns.
func ParseRule(text string) (Rule, error) {
	if !strings.HasPrefix(text, "{") {
		return Rule{Rule: text}, nil
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	var r Rule
	if err := dec.Decode(&r); err != nil {
		return Rule{}, fmt.Errorf("not a rule: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if dec.More() {
		return Rule{}, errors.New("not a rule: unexpected text after the object")
	}
	return r, r.check()
}

// check rejects empty restrictions: emptying a list must not turn a rule for a few into one for all.
func (r Rule) check() error {
	if r.Rule == "" {
		return errors.New(`a rule without a pattern: write {"rule": "tool:…", "roles": [… ]}`)
	}
	for _, l := range []struct {
		name string
		list []string
	}{{"roles", r.Roles}, {"agents", r.Agents}, {"channels", r.Channels}} {
		if l.list != nil && len(l.list) == 0 {
			return fmt.Errorf("%s is empty: name some, or leave it out to mean everybody", l.name)
		}
		if slices.Contains(l.list, "") {
			return fmt.Errorf("%s has an empty name", l.name)
		}
	}
	return nil
}

func (r Rule) restricted() bool { return len(r.Roles)+len(r.Agents)+len(r.Channels) > 0 }

func (r Rule) appliesTo(w Who) bool {
	if len(r.Roles) > 0 && !slices.ContainsFunc(w.Roles, func(role string) bool { return slices.Contains(r.Roles, role) }) {
		return false
	}
	return (len(r.Agents) == 0 || slices.Contains(r.Agents, w.Agent)) && (len(r.Channels) == 0 || slices.Contains(r.Channels, w.Channel))
}

// Scope says for whom the rule holds: "roles admin, dev; channels ops", or "".
func (r Rule) Scope() string {
	var out []string
	for _, l := range []struct {
		name string
		list []string
	}{{"roles", r.Roles}, {"agents", r.Agents}, {"channels", r.Channels}} {
		if len(l.list) > 0 {
			out = append(out, l.name+" "+strings.Join(l.list, ", "))
		}
	}
	return strings.Join(out, "; ")
}

// scoped is a compiled rule with restrictions.
type scoped struct {
	list string
	only Rule
	rule rule
}

// For returns the profile as it applies to somebody: the unrestricted rules and the restricted ones that
// include them. Without For, only the unrestricted rules apply. Calling For again changes nothing.
func (p *Profile) For(w Who) *Profile {
	if len(p.scoped) == 0 || p.resolved {
		return p
	}
	out := *p
	out.resolved, out.possibleCache = true, new(sync.Map)
	out.deny, out.allow, out.ask = slices.Clip(p.deny), slices.Clip(p.allow), slices.Clip(p.ask)
	for _, s := range p.scoped {
		if s.only.appliesTo(w) {
			l := out.listed(s.list)
			*l = append(*l, s.rule)
		}
	}
	return &out
}

func (p *Profile) listed(list string) *[]rule {
	switch list {
	case ListDeny:
		return &p.deny
	case ListAllow:
		return &p.allow
	default:
		return &p.ask
	}
}

// Strictest combines judgements on the same call: each part gets the strictest of
// its decisions. This intersects the rights of several people.
func Strictest(js ...Judgement) Judgement {
	if len(js) == 0 {
		nothing := Decision{Verdict: Deny, List: ListImplicit, Why: "no profile to judge by"}
		return Judgement{Verdict: Deny, Decision: nothing, Decisions: []Decision{nothing}}
	}
	out := js[0]
	out.Decisions = slices.Clone(out.Decisions)
	out.By = slices.Clip(out.By)
	for _, j := range js[1:] {
		out.Decisions = mergeDecisions(out.Decisions, j.Decisions)
		out.By = append(out.By, j.By...)
		if stricter(j.Decision, out.Decision) {
			out.Decision = j.Decision
		}
	}
	out.Verdict = out.Decision.Verdict
	return out
}

// mergeDecisions takes the stricter of two decisions on each part. One profile may
// have an additional part (a denial of the command as written).
func mergeDecisions(to, from []Decision) []Decision {
	used := make([]bool, len(to))
	for _, d := range from {
		at := -1
		for i := range used {
			if !used[i] && to[i].Action == d.Action && to[i].Depth == d.Depth && to[i].Kind == d.Kind {
				at = i
				break
			}
		}
		if at < 0 {
			to = append(to, d)
			continue
		}
		used[at] = true
		if stricter(d, to[at]) {
			to[at] = d
		}
	}
	return to
}
