package permit

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// Request is one thing a call would touch, as its tool declares it.
type Request struct {
	Tool    string
	Detail  string
	Command string // the whole shell command; then Detail is not looked at
}

// JudgeOptions are what the judge must know of the place.
type JudgeOptions struct {
	Home      string // Chorus's own home; refused to every writer. "" protects none
	Workspace string // where relative paths begin; absolute paths inside it are its own
	UserHome  string // what ~ stands for; may be ""
	Who       Who    // on whose behalf; rules may be restricted to some
	Guesses   bool   // decide also on the guesses that change nothing, for whoever explains it
}

// Judgement is the verdict on a whole call: the strictest of its parts.
type Judgement struct {
	Verdict   Verdict
	Decision  Decision   // the one that decided
	Decisions []Decision // all of them, in the order of the call

	// What it was judged by, so that a rule can be proposed that changes it.
	by       []*Profile
	requests []Request
	opt      JudgeOptions
}

// Judge decides on everything a call would touch. Nothing to judge is denied: a
// call that declares no access is judged by Request{Tool, ToolDetail(args)}.
func (p *Profile) Judge(requests []Request, opt JudgeOptions) Judgement {
	p = p.For(opt.Who)
	j := Judgement{by: []*Profile{p}, requests: requests, opt: opt}
	for _, r := range requests {
		if r.Command != "" || slices.Contains(shellTools, r.Tool) {
			if got := p.judgeShell(r, opt); j.Decisions == nil {
				j.Decisions = got
			} else {
				j.Decisions = append(j.Decisions, got...)
			}
			continue
		}
		j.Decisions = append(j.Decisions, p.judgeOther(r, opt))
	}
	if len(j.Decisions) == 0 {
		j.Decisions = []Decision{{Verdict: Deny, List: ListImplicit, Why: "nothing to judge"}}
	}
	j.Decision = j.Decisions[0]
	for _, d := range j.Decisions[1:] {
		if stricter(d, j.Decision) {
			j.Decision = d
		}
	}
	j.Verdict = j.Decision.Verdict
	return j
}

// stricter orders decisions; among denials an explicit one says more than silence.
func stricter(a, b Decision) bool {
	if a.Verdict != b.Verdict {
		return a.Verdict > b.Verdict
	}
	return rank(a) > rank(b)
}

func rank(d Decision) int {
	switch d.List {
	case ListCatastrophic:
		return 2
	case ListDeny:
		return 1
	}
	return 0
}

func (p *Profile) judgeOther(r Request, opt JudgeOptions) Decision {
	tool, detail := toCanonical(r.Tool, r.Detail)
	if slices.Contains(pathTools, tool) {
		if detail = relativeTo(detail, opt.Workspace); slices.Contains([]string{"write", "edit", "apply_patch"}, tool) && opt.touchesHome(detail, true) {
			return Decision{Verdict: Deny, List: ListCatastrophic, Action: Action(tool, detail), Why: "writing to Chorus's own home"}
		}
	}
	return p.Decide(Action(tool, detail))
}

func (p *Profile) judgeShell(r Request, opt JudgeOptions) []Decision {
	command := r.Command
	if command == "" {
		command = r.Detail
	}
	tool, _ := toCanonical(r.Tool, "")
	if tool == "" {
		tool = "bash"
	}
	s := shellJudge{profile: p, opt: opt, tool: tool, broad: p.allowsAnyShell()}
	s.single = tool == "bash" && !slices.ContainsFunc(aliases[tool], func(a string) bool { return p.mention[a] })
	idle := s.idle
	if opt.Guesses {
		idle = nil
	}
	tree := shell(command, idle)
	parts := 0
	tree.All(func(*Part, int) { parts++ })
	s.out = make([]Decision, 0, parts+2)
	// A deny rule may speak of the command as it was written.
	if d := firstMatch(p.deny, s.denyNames(command)); d != nil {
		as := d.decision(Deny, ListDeny)
		as.Action, as.Argv, as.Why = Action(tool, command), []string{command}, "the command as written"
		s.out = append(s.out, as)
	}
	tree.All(s.part)
	if !s.real {
		// Nothing but steps that need no rule beside others: then they do need one.
		d := p.decide(namesOf(Action(tool, command), p.mention))
		d.Action, d.Argv = Action(tool, command), []string{command}
		s.out = append(s.out, d)
	}
	return s.out
}

// shellJudge gathers the decisions on the parts of one command.
type shellJudge struct {
	profile *Profile
	opt     JudgeOptions
	tool    string
	broad   bool // opaque parts need not be asked
	real    bool // some part was judged in its own right
	single  bool // no rule knows the tool by another name
	one     [1]string
	spans   []span // room for one question
	out     []Decision
}

func (s *shellJudge) denyNames(text string) []string {
	n := s.names(text)
	return slices.Concat(n.open, n.shut)
}

func (s *shellJudge) names(text string) names {
	return namesOf(Action(s.tool, text), s.profile.mention)
}

// part decides on a part of the command.
func (s *shellJudge) part(part *Part, depth int) {
	d := s.judged(part)
	s.real = s.real || part.Kind == KindCommand || part.Kind == KindUnknown
	if d.Action == "" {
		d.Action = s.action(part)
	}
	d.Kind, d.Argv, d.Depth, d.Opaque = part.Kind, part.Argv, depth, part.Opaque || part.file().at > 0 && d.Verdict == Ask
	if d.Why == "" {
		d.Why = part.Why
	}
	s.out = append(s.out, d)
}

// idle says of a guess that it makes nothing stricter and tells nobody anything.
func (s *shellJudge) idle(guess *Part) bool {
	return guess.Why == "" && !guess.Opaque && s.judged(guess).Verdict == Allow
}

// judged is the decision on a part by itself.
func (s *shellJudge) judged(part *Part) Decision {
	var d Decision
	switch part.Kind {
	case KindWrite, KindRead:
		d = s.redirect(part)
	case KindWrapper, KindPlain, KindGuess:
		d = s.decide(part)
		// These are not judged in their own right: only a rule that means them
		// makes the verdict stricter.
		if d.List == ListImplicit || d.List == ListAsk && d.broad {
			d = Decision{Verdict: Allow, List: ListAllow}
		}
	default:
		d = s.decide(part)
	}
	// What cannot be parsed is asked for also where everything is allowed: no honest
	// command is lost by it, and nobody knows what the text would do.
	if d.Verdict == Allow && (!s.broad || part.Kind == KindUnknown) {
		if why := s.unsure(part); why != "" {
			d.Verdict, d.Why = Ask, why
		}
	}
	if why := catastrophe(part, s.opt); why != "" {
		d = Decision{Verdict: Deny, List: ListCatastrophic, Why: why}
	}
	return d
}

// action is the part's action under the tool that was called.
func (s *shellJudge) action(part *Part) string {
	if s.tool != "bash" && part.Kind != KindWrite && part.Kind != KindRead {
		return Action(s.tool, part.Text)
	}
	return part.Action
}

func (s *shellJudge) decide(part *Part) Decision {
	if s.single && part.Kind != KindWrite && part.Kind != KindRead && strings.HasPrefix(part.Action, "tool:bash:") {
		// The everyday case, without making lists of one.
		s.one[0] = part.Action
		if part.rare == nil {
			return s.profile.decide(names{open: s.one[:]})
		}
		also := part.rare
		return s.profile.decide(names{open: s.one[:], tight: also.tight, shut: also.deny})
	}
	n := namesOf(s.action(part), s.profile.mention)
	also := part.seldom()
	n.tight = append(n.tight, also.tight...)
	n.shut = append(n.shut, also.deny...)
	return s.profile.decide(n)
}

// redirect judges a redirection as the read or write it is. Where no rule speaks
// of the path, a rule for the whole shell covers it.
func (s *shellJudge) redirect(part *Part) Decision {
	tool, at, _ := Split(part.Action)
	at = relativeTo(at, s.opt.Workspace)
	n := namesOf(Action(tool, at), s.profile.mention)
	also := part.seldom()
	n.tight = append(n.tight, also.tight...)
	n.shut = append(n.shut, also.deny...)
	d := s.profile.decide(n)
	if d.List == ListImplicit {
		if shell := s.profile.decide(s.names(part.Text)); shell.Verdict != Deny {
			d = shell
		}
	}
	d.Action = Action(tool, at)
	return d
}

// unsure says why a part that a rule allows should be asked nevertheless.
func (s *shellJudge) unsure(part *Part) string {
	if part.Opaque {
		return part.Why
	}
	also := part.seldom()
	if also.file.at > 0 && !s.meant(part) {
		return also.file.why
	}
	if len(s.profile.deny) == 0 && len(also.may) == 0 {
		return ""
	}
	for _, name := range also.may {
		spans := []span{{text: name}, {gap: true}}
		if r := couldMatch(s.profile.deny, spans); r != nil {
			return "could be denied by " + r.pattern
		}
	}
	if !slices.ContainsFunc(part.words, func(w word) bool { return w.gaps != nil }) {
		return ""
	}
	r := s.couldBeDenied(s.tool, part.words)
	if r == nil && s.tool != "bash" {
		r = s.couldBeDenied("bash", part.words)
	}
	if r == nil && also.gitWords != nil {
		r = s.couldBeDenied("git", also.gitWords)
	}
	if r == nil {
		return ""
	}
	return "depending on what its words expand to, it is denied by " + r.pattern
}

// couldBeDenied is the rule that denies the words under a tool, if they expand so.
func (s *shellJudge) couldBeDenied(tool string, words []word) *rule {
	s.spans = spansAs(s.spans[:0], tool, words)
	return couldMatch(s.profile.deny, s.spans)
}

func couldMatch(rules []rule, spans []span) *rule {
	for i := range rules {
		if rules[i].couldMatch(spans) {
			return &rules[i]
		}
	}
	return nil
}

// spansAs adds the action of words under a tool, with gaps where they are not known.
func spansAs(out []span, tool string, words []word) []span {
	out = append(slices.Grow(out, 2*len(words)+4), span{text: Action(tool, "")})
	for i := range words {
		if i > 0 {
			out = append(out, span{text: " "})
		}
		if words[i].gaps == nil {
			out = append(out, span{text: words[i].text})
		} else {
			out = append(out, words[i].gaps.spans...)
		}
	}
	return out
}

// ToolDetail is the detail of a call whose tool declares no access: its arguments
// as JSON with sorted keys and no spaces, numbers as they were written. What is
// not JSON stands as it is.
func ToolDetail(args []byte) string {
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil || dec.More() {
		return strings.TrimSpace(string(args))
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return strings.TrimSpace(string(args))
	}
	return strings.TrimSpace(b.String())
}
