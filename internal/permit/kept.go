package permit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
)

// Whose says for whom and where something was allowed for good: all of it must fit.
type Whose struct {
	By      string // who gave it: it holds for what is done on their words alone
	Agent   string
	Dir     string
	Channel string // "" at a terminal
}

// Kept is what one person allowed for good.
type Kept struct {
	ID       string    `yaml:"id" json:"id"`
	By       string    `yaml:"by" json:"by"`
	Agent    string    `yaml:"agent" json:"agent"`
	Dir      string    `yaml:"dir" json:"dir"`
	Channel  string    `yaml:"channel,omitempty" json:"channel,omitempty"`
	At       time.Time `yaml:"at" json:"at"`
	Approval string    `yaml:"approval,omitempty" json:"approval,omitempty"` // the question it was the answer to
	Means    string    `yaml:"means,omitempty" json:"means,omitempty"`
	Rules    []string  `yaml:"rules" json:"rules"`
}

// Whose is for whom it holds.
func (k Kept) Whose() Whose { return Whose{k.By, k.Agent, k.Dir, k.Channel} }

// Name is an id that says what is kept: the same thing kept twice has the same.
func (k Kept) Name() string {
	h := sha256.New()
	fmt.Fprintf(h, "%q", append([]string{k.By, k.Agent, k.Dir, k.Channel}, k.Rules...))
	return hex.EncodeToString(h.Sum(nil)[:4])
}

// KeptRules is everything that was allowed for good. It only ever turns an ask into
// an allow: what is denied, catastrophic or opaque stays what it is. It never changes.
type KeptRules struct {
	list  []Kept
	rules [][]rule
}

// NewKept compiles what is kept.
func NewKept(list []Kept) (*KeptRules, error) {
	out := &KeptRules{list: slices.Clone(list)}
	seen := map[string]bool{}
	for i := range out.list {
		k := &out.list[i]
		if k.ID == "" {
			k.ID = k.Name()
		}
		compiled, err := k.compile()
		if err == nil && seen[k.ID] {
			err = errors.New("another one has this id")
		}
		if err != nil {
			return nil, fmt.Errorf("entry %d (%s): %w", i+1, k.ID, err)
		}
		seen[k.ID] = true
		out.rules = append(out.rules, compiled)
	}
	return out, nil
}

func (k *Kept) compile() ([]rule, error) {
	for name, value := range map[string]string{"by": k.By, "agent": k.Agent, "dir": k.Dir} {
		if value == "" {
			return nil, fmt.Errorf("%s is missing: a rule that is kept holds for one person, one agent and one directory", name)
		}
	}
	if len(k.Rules) == 0 {
		return nil, errors.New("it has no rules")
	}
	var out []rule
	for i, text := range k.Rules {
		r, only, err := compileRule(ListAllow, i, text)
		if err == nil && only.restricted() {
			err = errors.New("a rule that is kept is a pattern alone; for whom it holds stands beside it")
		}
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// List is what is kept, in order.
func (k *KeptRules) List() []Kept { return slices.Clone(k.list) }

// Allow reports whether what is asked for is allowed by what was kept for exactly
// this person, agent and place, and by which of it.
func (k *KeptRules) Allow(j Judgement, whose Whose) (used []Kept, ok bool) {
	if j.Verdict != Ask || len(j.by) == 0 || whose.By == "" {
		return nil, false
	}
	var more []rule
	for i := range k.list {
		if k.list[i].Whose() == whose {
			more = append(more, k.rules[i]...)
		}
	}
	if len(more) == 0 {
		return nil, false
	}
	deciding := map[string]bool{}
	for _, p := range j.widened(more) {
		after := p.Judge(j.requests, j.opt)
		if after.Verdict != Allow {
			return nil, false
		}
		for _, d := range after.Decisions {
			deciding[d.Rule] = true
		}
	}
	for _, entry := range k.list {
		if entry.Whose() == whose && slices.ContainsFunc(entry.Rules, func(r string) bool { return deciding[r] }) {
			used = append(used, entry)
		}
	}
	return used, true
}

// keptHead is what somebody reads who opens the file.
const keptHead = `# What people have allowed for good, each for themselves, one agent and one directory.
# It turns what would be asked into a yes, never what is denied. Edit it as you like:
# it is read again at the next question. "chorus permit allowed" lists and removes.
`

// ParseKept reads what Encode wrote. An unknown key is an error, and so is anything
// that cannot be used: half a file must not look like a whole one.
func ParseKept(data []byte) (*KeptRules, error) {
	if len(data) > largestRules {
		return nil, fmt.Errorf("larger than %d bytes", largestRules)
	}
	var list []Kept
	if len(bytes.TrimSpace(data)) > 0 {
		if err := yaml.UnmarshalWithOptions(data, &list, yaml.Strict()); err != nil {
			return nil, fmt.Errorf("%s", strings.TrimSpace(yaml.FormatError(err, false, false)))
		}
	}
	return NewKept(list)
}

// Encode is the file.
func (k *KeptRules) Encode() ([]byte, error) {
	if len(k.list) == 0 {
		return []byte(keptHead), nil
	}
	data, err := yaml.MarshalWithOptions(k.list, yaml.UseSingleQuote(true))
	if err != nil {
		return nil, fmt.Errorf("write down the rules that are kept: %w", err)
	}
	return append([]byte(keptHead), data...), nil
}
