// Package permit decides what an agent may do. It is pure: it reads rules and action
// strings, starts nothing and asks nobody. It promises that
//
//   - a deny rule holds whatever other rules say, under every name of an action;
//   - rules are tried in the order deny, allow, ask, and an action that no rule matches is denied;
//   - a shell command is taken apart and its strictest part decides;
//   - what cannot be resolved needs at least approval, unless the profile allows
//     everything and denies nothing;
//   - a short list of catastrophes is refused under every profile.
package permit

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"chorus/internal/permit/shell"
)

// Verdict is what a profile decides about an action. A greater value is stricter.
type Verdict int

// The verdicts, most lenient first.
const (
	Allow Verdict = iota
	Ask
	Deny
)

// String returns "allow", "ask" or "deny".
func (v Verdict) String() string {
	switch v {
	case Allow:
		return "allow"
	case Ask:
		return "ask"
	default:
		return "deny"
	}
}

// ParseVerdict parses what String returns.
func ParseVerdict(s string) (Verdict, error) {
	for _, v := range []Verdict{Allow, Ask, Deny} {
		if v.String() == s {
			return v, nil
		}
	}
	return Deny, fmt.Errorf("unknown verdict %q: use allow, ask or deny", s)
}

// MarshalText writes the verdict as its word.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads the word.
func (v *Verdict) UnmarshalText(text []byte) error {
	got, err := ParseVerdict(string(text))
	if err != nil {
		return err
	}
	*v = got
	return nil
}

// Rules is a profile as people write it: patterns in RE2 syntax. Each is matched against the
// whole action string, including newlines, and is case-sensitive. In these lists a restricted
// rule has the form of Rule.String; in JSON and YAML it is an object.
type Rules struct {
	Allow []string `json:"allow"`
	Ask   []string `json:"ask"`
	Deny  []string `json:"deny,omitempty"`
}

// The lists that a Decision can come from.
const (
	ListDeny         = "deny"
	ListAllow        = "allow"
	ListAsk          = "ask"
	ListImplicit     = "implicit"     // no rule matched
	ListCatastrophic = "catastrophic" // refused under every profile
)

// Decision is the verdict on one action and where it comes from.
type Decision struct {
	Verdict Verdict
	Rule    string // the pattern that decided; "" for implicit and catastrophic
	List    string // one of the List constants
	Action  string
	Scope   string // for whom the rule holds, if it is restricted
	Profile string // the profile of the rule, if there were several

	// The remaining fields are set for parts of a shell command.
	Kind   shell.Kind
	Argv   []string
	Depth  int    // nesting depth of the part: 0 for the command itself
	Opaque bool   // the text does not show what runs
	Why    string // why it is opaque, needs approval or is catastrophic
	Remote bool   // it changes something on another machine
	Doubt  *Doubt // why it needs approval although a rule allows it, or nil

	// Stricter is a second action string that must also be allowed if this action needs approval:
	// "git fetch" in the shell is also tool:git:fetch. "" if there is none.
	Stricter string

	broad bool // the rule covers every shell command, so it says little about this one
}

// Doubt is why a part needs approval whatever is allowed, so that no further allow rule can help.
type Doubt struct {
	Reason string // one clause, without what could be written instead
	Denies string // the deny rule that the part could be one of, depending on what it is when it runs; "" if it is not about one
}

// Profile is a compiled set of rules. It is immutable and safe for concurrent use.
type Profile struct {
	name          string
	rules         Rules
	deny          []rule
	allow         []rule
	ask           []rule
	mentioned     map[string]bool // alias tools that a rule other than a catch-all could match
	possibleCache *sync.Map       // results of Possible, by tool

	scoped   []scoped // restricted rules, which are not in the lists above
	resolved bool     // the applicable restricted rules have been added to the lists
}

// Compile compiles a profile. The error names the list, the pattern and the position in it. For
// syntax that RE2 lacks, it says how to express the same with the lists.
func Compile(name string, r Rules) (*Profile, error) {
	p := &Profile{name: name, possibleCache: new(sync.Map), rules: Rules{
		Allow: slices.Clone(r.Allow), Ask: slices.Clone(r.Ask), Deny: slices.Clone(r.Deny),
	}}
	every := map[string][]rule{}
	for _, l := range []struct {
		list string
		from []string
	}{{ListDeny, r.Deny}, {ListAllow, r.Allow}, {ListAsk, r.Ask}} {
		for i, text := range l.from {
			c, only, err := compileRule(l.list, i, text)
			if err != nil {
				return nil, fmt.Errorf("profile %s: %w", name, err)
			}
			every[l.list] = append(every[l.list], c)
			if only.restricted() {
				p.scoped = append(p.scoped, scoped{l.list, only, c})
				continue
			}
			to := p.listed(l.list)
			*to = append(*to, c)
		}
	}
	p.mentioned = mentions(every[ListDeny], every[ListAllow], every[ListAsk])
	return p, nil
}

// Name returns the profile's name.
func (p *Profile) Name() string { return p.name }

// Rules returns the patterns as written.
func (p *Profile) Rules() Rules {
	return Rules{Allow: slices.Clone(p.rules.Allow), Ask: slices.Clone(p.rules.Ask), Deny: slices.Clone(p.rules.Deny)}
}

// MarshalJSON writes the rules.
func (p *Profile) MarshalJSON() ([]byte, error) { return json.Marshal(p.rules) }

// Decide judges one action string as it is. It does not take shell commands apart; Judge does.
func (p *Profile) Decide(action string) Decision {
	d := p.decide(namesOf(action, p.mentioned))
	d.Action = action
	return d
}

// decide tries deny under every name, then allow, then ask under the names that may allow. If nothing
// matches, the action is denied. An explicit ask under a stricter name overrides an allow.
func (p *Profile) decide(n names) Decision {
	for _, set := range [][]string{n.grant, n.stricter, n.denyOnly} {
		if r := firstMatch(p.deny, set); r != nil {
			return r.decision(Deny, ListDeny)
		}
	}
	d := p.allowOrAsk(n.grant)
	if len(n.stricter) > 0 && d.Verdict == Allow {
		if t := p.allowOrAsk(n.stricter); t.List == ListAsk && !t.broad {
			d = t
		}
	}
	if len(n.stricter) > 0 && d.Verdict == Ask {
		d.Stricter = n.stricter[0]
	}
	return d
}

func (p *Profile) allowOrAsk(set []string) Decision {
	if r := firstMatch(p.allow, set); r != nil {
		return r.decision(Allow, ListAllow)
	}
	if r := mostSpecific(p.ask, set); r != nil {
		return r.decision(Ask, ListAsk)
	}
	return Decision{Verdict: Deny, List: ListImplicit}
}

func (r *rule) decision(v Verdict, list string) Decision {
	return Decision{Verdict: v, Rule: r.pattern, List: list, Scope: r.scope, broad: r.allShell && v != Deny}
}

// mostSpecific returns the first match that is about this action, or else a match that is
// about every command. The order of the two in the list does not matter.
func mostSpecific(rules []rule, set []string) *rule {
	var broad *rule
	for i := range rules {
		if r := firstMatch(rules[i:i+1], set); r != nil {
			if !r.allShell {
				return r
			}
			broad = cmp.Or(broad, r)
		}
	}
	return broad
}

// allowsAnyShell reports whether opaque commands need no approval:
// everything is allowed and there is no deny rule to avoid.
func (p *Profile) allowsAnyShell() bool {
	return len(p.deny) == 0 && slices.ContainsFunc(p.allow, func(r rule) bool { return r.allShell })
}

func firstMatch(rules []rule, set []string) *rule {
	for i := range rules {
		if slices.ContainsFunc(set, rules[i].matches) {
			return &rules[i]
		}
	}
	return nil
}
