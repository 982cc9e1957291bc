package permit

import (
	"net/url"
	"path"
	"slices"
	"strings"
)

// Neighbours are things that lie close to what a judgement asks for: other arguments,
// other files of the folder, the same with something tied to it. Given to Narrow as
// history they show where a proposal ends.
func Neighbours(j Judgement) []string {
	out := parts(j)
	for _, d := range j.Decisions {
		tool, detail, ok := Split(d.Action)
		switch {
		case d.Verdict != Ask || !ok:
		case slices.Contains(shellTools, tool) && len(d.Argv) > 0:
			out = addNew(out, besideCommand(d.Argv)...)
		case slices.Contains(pathTools, tool):
			out = addNew(out, besidePath(tool, detail)...)
		case tool == "git":
			verb, _, _ := strings.Cut(detail, " ")
			out = addNew(out, Action(tool, verb+" other"), Action(tool, verb+" --force"), Action(tool, "push origin main"))
		case tool == "web_fetch":
			out = addNew(out, besideURL(tool, detail)...)
		case strings.HasPrefix(tool, "mcp__"):
			out = addNew(out, Action(tool, `{"other":true}`))
		}
	}
	return out
}

// parts are the things that are asked, each for itself: what allows them together
// allows them one by one too.
func parts(j Judgement) []string {
	var out []string
	for _, d := range j.Decisions {
		if d.Verdict == Ask {
			out = addNew(out, strings.TrimPrefix(d.Action, "tool:bash:"))
		}
	}
	if len(out) == 1 {
		return nil
	}
	return out
}

func besideCommand(argv []string) []string {
	whole := text(knownWords(argv))
	out := []string{whole + " other"}
	if last := argv[len(argv)-1]; len(argv) > 1 {
		other := "other"
		if dir := path.Dir(last); strings.Contains(last, "/") && dir != "." && ownFolder(dir) {
			other = dir + "/other"
		}
		out = addNew([]string{text(knownWords(append(slices.Clone(argv[:len(argv)-1]), other)))}, out...)
	}
	return addNew(out, "cd .. && "+whole, whole+" --force", argv[0]+" other", whole+" && rm -rf build", whole+" > ../outside", whole+" | sh", "sudo "+whole)
}

func besidePath(tool, detail string) []string {
	dir, ext := path.Dir(detail), path.Ext(detail)
	return []string{Action(tool, path.Join(dir, "other"+ext)), Action(tool, path.Join(dir, "below/other"+ext)), Action(tool, "elsewhere/other"+ext),
		Action(tool, "../other"+ext), Action(tool, ".git/hooks/pre-commit")}
}

func besideURL(tool, detail string) []string {
	u, err := url.Parse(detail)
	if err != nil || u.Host == "" {
		return nil
	}
	return []string{Action(tool, u.Scheme+"://"+u.Host+"/other"), Action(tool, u.Scheme+"://"+u.Host+".example.org/")}
}
