package permit

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"chorus/internal/permit/action"
	"chorus/internal/permit/canonical"
	"chorus/internal/permit/shell"
	"chorus/internal/text"
)

// Request is one thing that a call would access, as its tool declares it.
type Request struct {
	Tool    string
	Detail  string
	Command string // the whole shell command; if set, Detail is ignored
	Git     bool   // the path lies in a git directory, whatever that directory is called
}

// JudgeOptions is what Judge needs to know besides the rules.
type JudgeOptions struct {
	Home      string // Chorus's data directory, which no call may write to; "" protects nothing
	Workspace string // base of relative paths; absolute paths inside it count as relative
	UserHome  string // what ~ stands for; may be ""
	Who       Who    // on whose behalf the call runs; restricted rules depend on it
	Guesses   bool   // also decide on guesses that change nothing, for explanations
	Sandboxed bool   // commands run in a sandbox: leaving it always needs approval, whatever the profile allows
}

// Place returns the part of the options that package shell needs.
func (o JudgeOptions) Place() shell.Place {
	return shell.Place{Home: o.Home, Workspace: o.Workspace, UserHome: o.UserHome}.Clean()
}

// Judgement is the verdict on a whole call: the strictest of its parts.
type Judgement struct {
	Verdict   Verdict
	Decision  Decision   // the decision that determined the verdict
	Decisions []Decision // all decisions, in the order of the call

	// What it was judged by, so that callers can propose rules that change it.
	By       []*Profile
	Requests []Request
	Options  JudgeOptions
}

// Judge decides on everything that a call would access. If there are no requests, the verdict is deny: a
// call that declares no access must be judged as Request{Tool, ToolDetail(args)}.
func (p *Profile) Judge(requests []Request, opt JudgeOptions) Judgement {
	p = p.For(opt.Who)
	j := Judgement{By: []*Profile{p}, Requests: requests, Options: opt}
	for _, r := range requests {
		if r.Command != "" || action.IsShell(r.Tool) {
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
		j.Decisions = []Decision{{Verdict: Deny, List: ListImplicit, Why: "the call declares nothing that it accesses"}}
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

// stricter orders decisions. Among denials, an explicit rule counts as
// stricter than the absence of a rule because it says more.
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
	tool, detail := canonicalName(r.Tool, r.Detail)
	writes := slices.Contains([]string{"write", "edit", "apply_patch"}, tool)
	if action.IsPath(tool) {
		if detail = action.RelativeTo(detail, opt.Workspace); writes && opt.Place().TouchesHome(detail, true) {
			return Decision{Verdict: Deny, List: ListCatastrophic, Action: action.Join(tool, detail), Why: "writing to Chorus's own home"}
		}
	}
	d := p.Decide(action.Join(tool, detail))
	guarded := writes && (r.Git || inGitDir(detail)) && (opt.Sandboxed || !p.allowsAnyShell())
	if d.Verdict == Allow && guarded && !strings.Contains(d.Rule, ".git") { // a rule that names .git is meant for it
		d.Verdict, d.Why = Ask, gitDirReason
	}
	return d
}

const gitDirReason = "files in a git directory decide which programs git starts"

// inGitDir reports whether a path lies below a .git folder, in any case: some file systems ignore case.
func inGitDir(path string) bool {
	for name := range strings.SplitSeq(path, "/") {
		if strings.EqualFold(name, ".git") {
			return true
		}
	}
	return false
}

func (p *Profile) judgeShell(r Request, opt JudgeOptions) []Decision {
	command := cmp.Or(r.Command, r.Detail)
	tool, _ := canonicalName(r.Tool, "")
	tool = cmp.Or(tool, "bash")
	s := shellJudge{profile: p, opt: opt, place: opt.Place(), tool: tool, opaqueAllowed: p.allowsAnyShell()}
	s.oneName = tool == "bash" && !slices.ContainsFunc(aliases[tool], func(a string) bool { return p.mentioned[a] })
	drop := s.drop
	if opt.Guesses {
		drop = nil
	}
	written := command
	canon, stmts, opaque := canonical.Read(command)
	if opaque == nil {
		command = canon
	}
	tree := shell.ParseRead(command, stmts, drop)
	parts := 0
	tree.All(func(*shell.Part, int) { parts++ })
	s.out = make([]Decision, 0, parts+2)
	// A deny rule may match the command as written or as run.
	wholes := []string{written, command}
	if written == command {
		wholes = wholes[:1]
	}
	for _, whole := range wholes {
		if len(p.deny) == 0 {
			break
		}
		if d := firstMatch(p.deny, s.denyNames(whole)); d != nil {
			as := d.decision(Deny, ListDeny)
			as.Action, as.Argv, as.Why = action.Join(tool, whole), []string{whole}, "the command as written"
			s.out = append(s.out, as)
			break
		}
	}
	// A command without a canonical text may do something other than it seems to, so no
	// rule can allow it, unless the profile allows everything.
	if opaque != nil && !s.opaqueAllowed {
		s.out = append(s.out, Decision{Verdict: Ask, List: ListImplicit, Action: action.Join(tool, written), Argv: []string{written}, Kind: shell.KindUnknown, Opaque: true, Why: opaque.Error(), Doubt: doubtOf(opaque)})
	}
	tree.All(s.part)
	if opaque != nil && s.opaqueAllowed { // otherwise a person is asked anyway
		s.hidden(written)
	}
	if !s.hasCommand {
		// Parts that need no rule next to other commands do need one on their own.
		d := p.decide(namesOf(action.Join(tool, command), p.mentioned))
		d.Action, d.Argv = action.Join(tool, command), []string{command}
		s.out = append(s.out, d)
	}
	return s.out
}

// doubtOf returns why a command without a canonical text needs approval. It leaves out how to write the
// command otherwise: that is for whoever writes it, and not for whoever approves it.
func doubtOf(opaque error) *Doubt {
	if o, ok := errors.AsType[*canonical.Opaque](opaque); ok {
		return &Doubt{Reason: o.Reason}
	}
	return &Doubt{Reason: opaque.Error()}
}

// hidden looks for catastrophes in a command that a shell may read differently than this
// package: in each line, and in each substitution wherever it is.
func (s *shellJudge) hidden(command string) {
	if slices.ContainsFunc(s.out, func(d Decision) bool { return d.List == ListCatastrophic }) {
		return
	}
	pieces := strings.FieldsFunc(command, func(r rune) bool { return r == '\n' || r == '\r' })
	for rest := command; len(pieces) < maxHidden; {
		at := strings.Index(rest, "$(")
		if at < 0 {
			break
		}
		rest = rest[at+2:]
		inner, _, _ := strings.Cut(rest, ")")
		pieces = append(pieces, inner)
	}
	for i, piece := range strings.Split(command, "`") {
		if i%2 == 1 {
			pieces = append(pieces, piece)
		}
	}
	for _, piece := range pieces[:min(len(pieces), maxHidden)] {
		shell.Parse(piece, nil).All(func(part *shell.Part, _ int) {
			if why := part.Catastrophe(s.place); why != "" {
				s.out = append(s.out, Decision{Verdict: Deny, List: ListCatastrophic, Action: action.Join(s.tool, piece), Argv: part.Argv, Kind: part.Kind, Why: why})
			}
		})
	}
}

// maxHidden limits the time that hidden takes.
const maxHidden = 100

// shellJudge collects the decisions on the parts of one command.
type shellJudge struct {
	profile       *Profile
	opt           JudgeOptions
	place         shell.Place
	tool          string
	opaqueAllowed bool // opaque parts need no approval
	hasCommand    bool // some part needs a rule of its own
	oneName       bool // no rule uses another name of the tool
	nameBuf       [1]string
	spans         []shell.Span // reused between parts, like nfa
	nfa           nfa
	out           []Decision
}

func (s *shellJudge) denyNames(text string) []string {
	n := s.names(text)
	return slices.Concat(n.grant, n.denyOnly)
}

func (s *shellJudge) names(text string) names {
	return namesOf(action.Join(s.tool, text), s.profile.mentioned)
}

// part decides on one part of the command.
func (s *shellJudge) part(part *shell.Part, depth int) {
	d := s.decidePart(part)
	s.hasCommand = s.hasCommand || part.Kind == shell.KindCommand || part.Kind == shell.KindUnknown
	if d.Action == "" {
		d.Action = s.action(part)
	}
	d.Kind, d.Argv, d.Depth, d.Opaque = part.Kind, part.Argv, depth, part.Opaque || part.RunsFile() != "" && d.Verdict == Ask
	d.Why = cmp.Or(d.Why, part.Why)
	d.Remote = part.ChangesRemote()
	s.out = append(s.out, d)
}

// drop reports whether a guess makes nothing stricter and explains nothing.
func (s *shellJudge) drop(guess *shell.Part) bool {
	return guess.Why == "" && !guess.Opaque && s.decidePart(guess).Verdict == Allow
}

// decidePart returns the decision on one part.
func (s *shellJudge) decidePart(part *shell.Part) Decision {
	var d Decision
	switch part.Kind {
	case shell.KindWrite, shell.KindRead:
		d = s.redirect(part)
	case shell.KindWrapper, shell.KindPlain, shell.KindGuess:
		d = s.decide(part)
		// These need no rule of their own. Only a rule that is
		// specifically about them makes the verdict stricter.
		if d.List == ListImplicit || d.List == ListAsk && d.broad {
			d = Decision{Verdict: Allow, List: ListAllow}
		}
	default:
		d = s.decide(part)
	}
	if clean, ok := part.CleanFile(); ok {
		// tools/../../x.py runs x.py, so a rule must allow that too.
		if c := s.profile.decide(s.names(clean)); stricter(c, d) {
			d = c
		}
	}
	if d.List == ListImplicit && part.Derived() != "" {
		d.Verdict, d.Why = Ask, part.Derived()+", and no rule covers it"
	}
	// Unparsable text needs approval even if everything is allowed: honest commands
	// lose nothing, and nobody knows what the text would do.
	if d.Verdict == Allow && (!s.opaqueAllowed || part.Kind == shell.KindUnknown) {
		if why, doubt := s.mustAsk(part); why != "" {
			d.Verdict, d.Why, d.Doubt = Ask, why, doubt
		}
	}
	if why := part.Catastrophe(s.place); why != "" {
		d = Decision{Verdict: Deny, List: ListCatastrophic, Why: why}
	}
	return d
}

// action returns the part's action under the tool that was called.
func (s *shellJudge) action(part *shell.Part) string {
	if s.tool != "bash" && part.Kind != shell.KindWrite && part.Kind != shell.KindRead {
		return action.Join(s.tool, part.Text)
	}
	return part.Action
}

func (s *shellJudge) decide(part *shell.Part) Decision {
	if s.oneName && part.Kind != shell.KindWrite && part.Kind != shell.KindRead && strings.HasPrefix(part.Action, "tool:bash:") {
		// The common case, without allocating lists.
		s.nameBuf[0] = part.Action
		stricter, denyOnly := part.Names()
		return s.profile.decide(names{grant: s.nameBuf[:], stricter: stricter, denyOnly: denyOnly})
	}
	return s.profile.decide(s.withNames(s.action(part), part))
}

// withNames returns the names of an action and those that the part adds.
func (s *shellJudge) withNames(action string, part *shell.Part) names {
	n := namesOf(action, s.profile.mentioned)
	stricter, denyOnly := part.Names()
	n.stricter = append(n.stricter, stricter...)
	n.denyOnly = append(n.denyOnly, denyOnly...)
	return n
}

// redirect judges a redirection as a read or a write. If no rule matches
// the path, a rule for all shell commands covers it.
func (s *shellJudge) redirect(part *shell.Part) Decision {
	tool, at, _ := action.Split(part.Action)
	whole := part.Action
	if relative := action.RelativeTo(at, s.opt.Workspace); relative != at {
		at, whole = relative, action.Join(tool, relative)
	}
	d := s.profile.decide(s.withNames(whole, part))
	if d.List == ListImplicit {
		if shell := s.profile.decide(s.names(part.Text)); shell.Verdict != Deny {
			d = shell
		}
	}
	if part.IsPurpose() && (d.List == ListImplicit || d.List == ListAsk && d.broad) && !part.Expands() && !part.Opaque && staysBelow(at) {
		d = Decision{Verdict: Allow, List: ListAllow} // the rule for the command covers it
	}
	if d.Verdict == Allow && tool == "write" && inGitDir(at) && !strings.Contains(d.Rule, ".git") && (s.opt.Sandboxed || !s.opaqueAllowed) {
		d.Verdict, d.Why = Ask, gitDirReason
	}
	if d.Verdict != Allow && d.Why == "" {
		d.Why = part.Derived()
	}
	d.Action = whole
	return d
}

// staysBelow reports whether a path is relative and stays below its starting point.
func staysBelow(at string) bool {
	at = action.CleanPath(at)
	return at != "" && at[0] != '/' && at[0] != '~' && at != ".." && !strings.HasPrefix(at, "../") && !strings.HasPrefix(at, "@")
}

// mustAsk returns why an allowed part needs approval nevertheless, or "". The doubt is nil where a rule that
// names the file would help.
func (s *shellJudge) mustAsk(part *shell.Part) (why string, doubt *Doubt) {
	if part.Opaque {
		return part.Why, &Doubt{Reason: part.Reason()}
	}
	if why := part.RunsFile(); why != "" && !s.namesFile(part) {
		return why, nil
	}
	if len(s.profile.deny) == 0 {
		return "", nil
	}
	for _, name := range part.MaybeNames() {
		spans := []shell.Span{{Text: name}, {Gap: true}}
		if r := couldMatch(&s.nfa, s.profile.deny, spans); r != nil {
			return "could be denied by " + r.pattern, &Doubt{Reason: "its words may mean something that a rule denies", Denies: r.pattern}
		}
	}
	if !part.Expands() {
		return "", nil
	}
	if part.Kind == shell.KindWrite || part.Kind == shell.KindRead {
		s.spans = part.AppendFileSpans(s.spans[:0])
	} else {
		s.spans = part.AppendSpans(s.spans[:0], s.tool)
	}
	r := couldMatch(&s.nfa, s.profile.deny, s.spans)
	if r == nil && s.tool != "bash" {
		s.spans = part.AppendSpans(s.spans[:0], "bash")
		r = couldMatch(&s.nfa, s.profile.deny, s.spans)
	}
	if r == nil {
		if s.spans = part.AppendGitSpans(s.spans[:0]); len(s.spans) > 0 {
			r = couldMatch(&s.nfa, s.profile.deny, s.spans)
		}
	}
	if r == nil {
		return "", nil
	}
	return "depending on what its words expand to, it is denied by " + r.pattern, &Doubt{Reason: "what its words expand to may be something that a rule denies", Denies: r.pattern}
}

// otherFile is a name that no file has.
const otherFile = "\x01Zq9"

// namesFile reports whether some allow rule is specific to the file that a part runs, that is,
// would not match if the file had another name. For runners, a rule that names no program also
// counts: it covers everything that runs the workspace's code.
func (s *shellJudge) namesFile(part *shell.Part) bool {
	is, would := s.names(part.Text).grant, s.names(part.WithFile(otherFile)).grant
	if clean, ok := part.CleanFile(); ok {
		is = s.names(clean).grant
	}
	var other []string
	if part.IsRunner() {
		other = s.names(part.WithProgram(otherFile)).grant
	}
	for i := range s.profile.allow {
		r := s.profile.allow[i : i+1]
		if firstMatch(r, is) != nil && (firstMatch(r, would) == nil || firstMatch(r, other) != nil) {
			return true
		}
	}
	return false
}

func couldMatch(n *nfa, rules []rule, spans []shell.Span) *rule {
	for i := range rules {
		if rules[i].couldMatch(n, spans) {
			return &rules[i]
		}
	}
	return nil
}

// RequestOf returns the request for an action string or a shell command.
func RequestOf(entry string) Request {
	tool, detail, ok := action.Split(entry)
	if !ok {
		return Request{Tool: "bash", Command: entry}
	}
	if action.IsShell(tool) {
		return Request{Tool: tool, Command: detail}
	}
	return Request{Tool: tool, Detail: detail}
}

// ToolDetail returns the detail of a call whose tool declares no access: its arguments as JSON with sorted
// keys, no spaces, and numbers as written. Arguments that are not JSON are returned unchanged.
func ToolDetail(args []byte) string {
	if sorted, ok := text.SortedJSON(args); ok {
		return string(sorted)
	}
	return strings.TrimSpace(string(args))
}
