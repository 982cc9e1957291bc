package shell

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// programDirs are where a system keeps its programs. A program started by a path
// elsewhere is treated like any other file: it may have just been written.
var programDirs = []string{"/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/opt/homebrew/bin"}

// codeFile is a word of a part that names a file (or an image) whose contents decide what
// runs. The contents are not read. Therefore only a rule that restricts the file's name
// allows it; a rule that only names the program before it does not.
type codeFile struct {
	at     int    // index among the words, counted from 1; 0 means none
	option string // what precedes the name in that word: -f, --file=
	why    string
	runner bool // it makes an interpreter run the code of its working directory
}

// startedByPath reports whether the words start a file outside the system's program directories.
func startedByPath(words []word) bool {
	v := words[0].value
	return strings.Contains(v, "/") && !slices.Contains(programDirs, path.Dir(path.Clean(v)))
}

// Reasons for runsFile.
const (
	unreadFile  = "it runs the file %s, whose contents are not checked"
	unreadImage = "it is not known what the image %s runs"
	ownCode     = "%s runs the code of the workspace, and a rule for the program before it does not cover that"
)

// runsFile records that a word names what runs.
func (p *Part) runsFile(words []word, at int, reason string) {
	p.runs(codeFile{at: at + 1, why: fmt.Sprintf(reason, words[at].text)})
}

func (p *Part) runs(file codeFile) {
	if p.file().at == 0 {
		p.addExtra().file = file
	}
}

// runsValue records that the value of an option names what runs. from is
// the index of the first option among all words.
func (p *Part) runsValue(words []word, from int, g *given, reason string) {
	file := codeFile{at: from + g.at + 1, why: fmt.Sprintf(reason, g.value.text), runner: reason == ownCode}
	if g.inside {
		file.option = strings.TrimSuffix(words[from+g.at].value, g.value.value)
	} else {
		file.at++
	}
	p.runs(file)
}

// liftFile moves the file from what a runner starts to the runner itself, so that a rule for
// "poetry run python x.py" can name the script just as one for "python x.py" can.
func (p *Part) liftFile(children []Part) {
	for i := range children {
		c := &children[i]
		if file := c.file(); file.at > 0 {
			name := c.words[file.at-1].text
			if at := slices.IndexFunc(p.words, func(x word) bool { return x.text == name }); at >= 0 {
				file.at = at + 1
				p.runs(file)
				c.extra.file = codeFile{}
			}
		}
		p.liftFile(c.Children)
	}
}

// sourced handles ". file" and "source file".
func (w *walker) sourced(p *Part, words []word) {
	clear(w.funcs) // the file may declare other functions
	switch {
	case len(words) < 2:
	case !words[1].known || strings.HasPrefix(words[1].value, "/dev/") || strings.HasPrefix(words[1].value, "/proc/"):
		p.opaque("the script is not known before it runs")
	default:
		p.runsFile(words, 1, unreadFile)
	}
}
