// Package always holds the rules that people keep by answering "always allow", and
// proposes what such an answer may mean. It promises that a kept rule
//
//   - holds only for the person who gave it, one agent, one directory and one channel;
//   - only turns an ask into an allow: what is denied, catastrophic or opaque stays so.
package always

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"chorus/internal/permit"
	"chorus/internal/yamltext"
)

// Grantee says for whom and where a kept rule holds. All fields must match.
type Grantee struct {
	By      string // who gave the rule; it holds only for what is done on their behalf
	Agent   string
	Dir     string
	Channel string // "" at a terminal
}

// Entry is what one person allowed with one answer.
type Entry struct {
	ID       string    `yaml:"id" json:"id"`
	By       string    `yaml:"by" json:"by"`
	Agent    string    `yaml:"agent" json:"agent"`
	Dir      string    `yaml:"dir" json:"dir"`
	Channel  string    `yaml:"channel,omitempty" json:"channel,omitempty"`
	At       time.Time `yaml:"at" json:"at"`
	Approval string    `yaml:"approval,omitempty" json:"approval,omitempty"` // the approval that was answered
	Means    string    `yaml:"means,omitempty" json:"means,omitempty"`
	Rules    []string  `yaml:"rules" json:"rules"`
}

// Grantee returns for whom the entry holds.
func (e Entry) Grantee() Grantee { return Grantee{e.By, e.Agent, e.Dir, e.Channel} }

// Name returns an id derived from what the entry allows, so equal grants have equal ids.
func (e Entry) Name() string {
	h := sha256.New()
	fmt.Fprintf(h, "%q", append([]string{e.By, e.Agent, e.Dir, e.Channel}, e.Rules...))
	return hex.EncodeToString(h.Sum(nil)[:4])
}

// Rules holds all kept rules. It is immutable.
type Rules struct {
	list     []Entry
	patterns []permit.Patterns // parallel to list
}

// New compiles entries. An entry without an id gets its Name as id.
func New(list []Entry) (*Rules, error) {
	out := &Rules{list: slices.Clone(list)}
	seen := map[string]bool{}
	for i := range out.list {
		e := &out.list[i]
		if e.ID == "" {
			e.ID = e.Name()
		}
		compiled, err := e.compile()
		if err == nil && seen[e.ID] {
			err = errors.New("another entry has this id")
		}
		if err != nil {
			return nil, fmt.Errorf("entry %d (%s): %w", i+1, e.ID, err)
		}
		seen[e.ID] = true
		out.patterns = append(out.patterns, compiled)
	}
	return out, nil
}

func (e *Entry) compile() (permit.Patterns, error) {
	for name, value := range map[string]string{"by": e.By, "agent": e.Agent, "dir": e.Dir} {
		if value == "" {
			return nil, fmt.Errorf("%s is missing: a kept rule holds for one person, one agent and one directory", name)
		}
	}
	if len(e.Rules) == 0 {
		return nil, errors.New("it has no rules")
	}
	return permit.CompilePatterns(e.Rules)
}

// List returns the entries in order.
func (r *Rules) List() []Entry { return slices.Clone(r.list) }

// Allow reports whether the entries for exactly this person, agent and place
// allow what is asked, and returns the entries that do.
func (r *Rules) Allow(j permit.Judgement, to Grantee) (used []Entry, ok bool) {
	if j.Verdict != permit.Ask || len(j.By) == 0 || to.By == "" {
		return nil, false
	}
	var more permit.Patterns
	for i := range r.list {
		if r.list[i].Grantee() == to {
			more = append(more, r.patterns[i]...)
		}
	}
	if len(more) == 0 {
		return nil, false
	}
	deciding := map[string]bool{}
	for _, p := range j.By {
		after := p.Allowing(more).Judge(j.Requests, j.Options)
		if after.Verdict != permit.Allow {
			return nil, false
		}
		for _, d := range after.Decisions {
			deciding[d.Rule] = true
		}
	}
	for _, e := range r.list {
		if e.Grantee() == to && slices.ContainsFunc(e.Rules, func(rule string) bool { return deciding[rule] }) {
			used = append(used, e)
		}
	}
	return used, true
}

// fileHeader explains the file to people who open it.
const fileHeader = `# Rules kept with "always allow": each holds for one person, one agent and one directory.
# They allow what would be asked, never what is denied. You may edit this file; it is
# read again for the next approval. "chorus permit allowed" lists and removes rules.
`

// maxFileSize is far larger than any file that people create by answering.
const maxFileSize = 1 << 20

// Parse reads what Encode wrote. Unknown keys and unusable entries are
// errors: a damaged file must not pass for a whole one.
func Parse(data []byte) (*Rules, error) {
	if len(data) > maxFileSize {
		return nil, fmt.Errorf("larger than %d bytes", maxFileSize)
	}
	var list []Entry
	if len(bytes.TrimSpace(data)) > 0 {
		if err := yamltext.Read(data, &list); err != nil {
			return nil, errors.New(yamltext.Reason(err))
		}
	}
	return New(list)
}

// Encode returns the contents of the file.
func (r *Rules) Encode() ([]byte, error) {
	if len(r.list) == 0 {
		return []byte(fileHeader), nil
	}
	data, err := yamltext.Write(r.list)
	if err != nil {
		return nil, fmt.Errorf("encode the kept rules: %w", err)
	}
	return append([]byte(fileHeader), data...), nil
}
