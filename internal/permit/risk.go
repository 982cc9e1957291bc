package permit

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"chorus/internal/permit/action"
	"chorus/internal/permit/shell"
	"chorus/internal/text"
)

// Grade is how much harm a call could do, for people who are asked about it.
type Grade string

// The grades, from low to high.
const (
	LowRisk    Grade = "low"    // reads, or reports something
	MediumRisk Grade = "medium" // its effect can be seen and undone
	HighRisk   Grade = "high"   // its effect may be irreversible, leave this machine, or be unknown in advance
)

// rank orders grades.
func (g Grade) rank() int { return slices.Index([]Grade{LowRisk, MediumRisk, HighRisk}, g) }

// Risk grades a call by what its parts do and says why in a sentence. own is the grade that its tool
// declares, for calls of which nothing else is known. The grade decides nothing; the rules do.
func (j Judgement) Risk(own Grade) (Grade, string) {
	r := riskReport{workspace: j.Options.Workspace, grade: LowRisk, own: own}
	for i, d := range j.Decisions {
		if i > 0 && wholeCommand(j.Decisions[i-1], d) {
			r.add(LowRisk, changesNothing)
			continue
		}
		r.part(d)
	}
	return r.grade, r.sentence()
}

// wholeCommand reports whether d is the decision on a whole command that follows the decisions on its
// parts, so that a rule can name it. The parts already describe what it does.
func wholeCommand(before, d Decision) bool {
	tool, _, _ := action.Split(d.Action)
	return d.Kind == "" && before.Kind != "" && action.IsShell(tool)
}

// riskReport collects what the parts of a call do. It keeps only what makes up the highest grade.
type riskReport struct {
	workspace string
	own       Grade
	grade     Grade
	does      []string // "deletes files", in the order of the parts
}

// maxReasons is how many reasons a sentence names.
const maxReasons = 3

func (r *riskReport) add(g Grade, does string) {
	switch {
	case g.rank() > r.grade.rank():
		r.grade, r.does = g, []string{does}
	case g == r.grade && !slices.Contains(r.does, does):
		r.does = append(r.does, does)
	}
}

// sentence puts the findings into a sentence.
func (r *riskReport) sentence() string {
	does := r.does
	if len(does) > 1 { // trivial findings are left out if there are others
		does = slices.DeleteFunc(slices.Clone(does), func(s string) bool { return s == printsOnly || s == waitsOnly || s == changesNothing })
	}
	switch n := len(does); {
	case n == 0:
		return "It changes nothing."
	case n == 1:
		return "It " + does[0] + "."
	default:
		n = min(n, maxReasons)
		return "It " + strings.Join(does[:n-1], ", ") + " and " + does[n-1] + "."
	}
}

// Descriptions of parts that do nothing else.
const (
	readsOnly      = "only reads"
	printsOnly     = "only prints something"
	waitsOnly      = "only waits"
	changesNothing = "changes nothing"
)

// part adds what one part of a call does.
func (r *riskReport) part(d Decision) {
	if d.List == ListCatastrophic {
		r.add(HighRisk, "is refused under every profile: "+d.Why)
		return
	}
	tool, detail, ok := action.Split(d.Action)
	if !ok {
		r.add(r.own, "calls a tool that declares nothing")
		return
	}
	switch d.Kind {
	case shell.KindPlain:
		if d.Opaque {
			r.unknown(d)
		}
		return
	case shell.KindRead:
		r.reads(detail)
		return
	case shell.KindWrite:
		r.writes(detail)
		return
	case shell.KindWrapper, shell.KindGuess, shell.KindCommand:
		r.command(d)
		return
	case shell.KindUnknown:
		r.unknown(d)
		return
	}
	if action.IsShell(tool) {
		r.command(d)
		return
	}
	r.call(d, tool, detail)
}

// call adds what a call of a tool other than the shell does.
func (r *riskReport) call(d Decision, tool, detail string) {
	verb, _, _ := strings.Cut(detail, " ")
	switch {
	case slices.Contains([]string{"write", "edit", "apply_patch"}, tool):
		r.writes(detail)
	case slices.Contains([]string{"read", "list_files", "search_files"}, tool):
		r.reads(detail)
	case tool == "upload":
		r.add(MediumRisk, "shows a file to everybody in the channel")
	case tool == "web_fetch" || tool == "web_search":
		r.add(MediumRisk, "reaches the network")
	case tool == "git":
		r.git(d, append([]string{"git"}, strings.Fields(detail)...))
	case tool == "self_edit" && verb == "permissions":
		r.add(HighRisk, "changes what the agent itself may do")
	case tool == "self_edit":
		r.add(higher(r.own, MediumRisk), "changes the agent itself: its "+strings.ReplaceAll(verb, "_", " "))
	case strings.HasPrefix(tool, "mcp__"):
		r.add(higher(r.own, MediumRisk), "calls a tool of an MCP server, whose effect is not known")
	case tool == "spawn_agent" || tool == "send_to_agent":
		r.add(MediumRisk, "gives work to another agent, which costs money")
	default:
		about := RuleName(d.Rule)
		if about == "" || d.Rule == `.*` {
			about = "the tool " + text.Clip(text.OneLine(tool), 60)
		}
		r.add(higher(r.own, LowRisk), "is a call about "+about)
	}
}

// higher returns the higher of two grades.
func higher(a, b Grade) Grade {
	if a.rank() < b.rank() {
		return b
	}
	return a
}

// harmless adds a low-risk part, unless it may start something that nobody can read.
func (r *riskReport) harmless(d Decision, does string) {
	if d.Opaque {
		r.unknown(d)
		return
	}
	r.add(LowRisk, does)
}

// unknown adds a part that nobody can read before it runs.
func (r *riskReport) unknown(d Decision) {
	const begin = "cannot be judged in advance"
	if slices.ContainsFunc(r.does, func(s string) bool { return strings.HasPrefix(s, begin) }) {
		return // one reason is enough
	}
	why, _, _ := strings.Cut(cmp.Or(d.Why, "it cannot be read"), ";") // what follows is advice for the agent
	r.add(HighRisk, begin+" ("+text.Clip(text.OneLine(why), 120)+")")
}

// writes adds a file that is written.
func (r *riskReport) writes(file string) {
	switch at := r.where(file); {
	case file == "/dev/null" || strings.HasPrefix(file, "/dev/std") || strings.HasPrefix(file, "/dev/fd/"):
	case inGitDir(file):
		r.add(HighRisk, "changes files in a git directory, which decide what programs git starts")
	case at == placeOutside:
		r.add(HighRisk, "writes outside of the workspace ("+shownPath(file)+")")
	case at == placeTemporary:
		r.add(MediumRisk, "writes a temporary file")
	case at == placeRoot:
		root, _, _ := strings.Cut(file, "/")
		r.add(MediumRisk, "changes what the agent reads later ("+shownPath(root)+")")
	default:
		r.add(MediumRisk, "changes files in the workspace")
	}
}

// reads adds a file that is read.
func (r *riskReport) reads(file string) {
	switch at := r.where(file); {
	case holdsSecrets(file):
		r.add(HighRisk, "reads what may be a secret ("+shownPath(file)+")")
	case at == placeOutside:
		r.add(MediumRisk, "reads outside of the workspace ("+shownPath(file)+")")
	default:
		r.add(LowRisk, readsOnly)
	}
}

func shownPath(file string) string { return text.Clip(text.OneLine(file), 60) }

// holdsSecrets reports whether a path has a name under which keys and passwords are kept.
func holdsSecrets(file string) bool {
	for name := range strings.SplitSeq(strings.ToLower(file), "/") {
		switch {
		case slices.Contains([]string{".ssh", ".gnupg", ".aws", ".netrc", ".pgpass", ".npmrc", ".pypirc", ".kube", "shadow", "credentials", ".env", ".git-credentials"}, name),
			strings.HasPrefix(name, ".env."), strings.HasPrefix(name, "id_rsa"), strings.HasPrefix(name, "id_ed25519"), strings.HasSuffix(name, ".pem"), strings.HasSuffix(name, ".key"):
			return true
		}
	}
	return false
}

// pathPlace says where a path is.
type pathPlace int

const (
	placeInside pathPlace = iota
	placeTemporary
	placeRoot // a named root, such as @docs
	placeOutside
)

func (r *riskReport) where(file string) pathPlace {
	file = action.RelativeTo(file, r.workspace)
	switch {
	case strings.HasPrefix(file, "@"):
		return placeRoot
	case strings.HasPrefix(file, "/tmp/") || strings.HasPrefix(file, "/var/tmp/") || strings.HasPrefix(file, "$TMPDIR"):
		return placeTemporary
	case path.IsAbs(file), strings.HasPrefix(file, "~"), strings.HasPrefix(file, "$HOME"), file == "..", strings.HasPrefix(path.Clean(file), "../"):
		return placeOutside
	}
	return placeInside
}
