package always

import (
	"net/url"
	"path"
	"slices"
	"strings"

	"chorus/internal/permit"
	"chorus/internal/permit/action"
	"chorus/internal/permit/shell"
	"chorus/internal/text"
)

// Similar returns requests that differ a little from those of a judgement: other
// arguments, other files of the folder, the same command combined with another. Given to
// Propose as history, they show what a proposal does not allow.
func Similar(j permit.Judgement) []string {
	out := askedParts(j)
	for _, d := range j.Decisions {
		tool, detail, ok := action.Split(d.Action)
		switch {
		case d.Verdict != permit.Ask || !ok:
		case action.IsShell(tool) && len(d.Argv) > 0:
			out = text.AddNew(out, similarCommands(d.Argv)...)
		case action.IsPath(tool):
			out = text.AddNew(out, similarPaths(tool, detail)...)
		case tool == "git":
			verb, _, _ := strings.Cut(detail, " ")
			out = text.AddNew(out, action.Join(tool, verb+" other"), action.Join(tool, verb+" --force"), action.Join(tool, "push origin main"))
		case tool == "web_fetch":
			out = text.AddNew(out, similarURLs(tool, detail)...)
		case strings.HasPrefix(tool, "mcp__"):
			out = text.AddNew(out, action.Join(tool, `{"other":true}`))
		}
	}
	return out
}

// askedParts returns the parts that need approval, each on its own: rules
// that allow them together also allow them one by one.
func askedParts(j permit.Judgement) []string {
	var out []string
	for _, d := range j.Decisions {
		if d.Verdict == permit.Ask {
			out = text.AddNew(out, strings.TrimPrefix(d.Action, action.Bash))
		}
	}
	if len(out) == 1 {
		return nil
	}
	return out
}

func similarCommands(argv []string) []string {
	whole := shell.Join(argv)
	out := []string{whole + " other"}
	if last := argv[len(argv)-1]; len(argv) > 1 {
		other := "other"
		if dir := path.Dir(last); strings.Contains(last, "/") && dir != "." && ownFolder(dir) {
			other = dir + "/other"
		}
		out = text.AddNew([]string{shell.Join(append(slices.Clone(argv[:len(argv)-1]), other))}, out...)
	}
	return text.AddNew(out, "cd .. && "+whole, whole+" --force", argv[0]+" other", whole+" && rm -rf build", whole+" > ../outside", whole+" | sh", "sudo "+whole)
}

func similarPaths(tool, detail string) []string {
	dir, ext := path.Dir(detail), path.Ext(detail)
	return []string{action.Join(tool, path.Join(dir, "other"+ext)), action.Join(tool, path.Join(dir, "below/other"+ext)), action.Join(tool, "elsewhere/other"+ext),
		action.Join(tool, "../other"+ext), action.Join(tool, ".git/hooks/pre-commit")}
}

func similarURLs(tool, detail string) []string {
	u, err := url.Parse(detail)
	if err != nil || u.Host == "" {
		return nil
	}
	return []string{action.Join(tool, u.Scheme+"://"+u.Host+"/other"), action.Join(tool, u.Scheme+"://"+u.Host+".example.org/")}
}
