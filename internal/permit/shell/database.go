package shell

import (
	"slices"
	"strings"

	"chorus/internal/pattern"
)

// dbRuns matches what makes a database's command line start programs, read more commands or write files.
var dbRuns = pattern.Lazy(`(?i)\\[!ioe]|(?:^|[\s;'"])\.(?:sh|sy|read|import|load|once|out|excel|edit|clone|save|backup|dump|log|cd|arch|ar\b|session|trace)|` +
	`\bsystem\b|\bprogram\b|load_extension|writefile|edit\(|fts3_tokenizer|attach|vacuum\b[^;]*\binto\b|into\s+(?:outfile|dumpfile)|\bcopy\b`)

// plainDots are the sqlite3 commands that only control what is shown and how. Others can be
// abbreviated, and may start programs, read commands or write files.
var plainDots = strings.Fields(`tables schema fullschema indexes indices headers header mode databases dbinfo help show timer width separator nullvalue quit exit stats echo bail changes print
explain eqp version limit lint`)

// database handles the command line of a database client, which may be told to start programs.
func (w *walker) database(p *Part, prog string, words []word, u *usage, stdin bool) {
	for i := range words[1:] {
		x := &words[1+i]
		if dbRuns().MatchString(x.value) || !x.known && !x.glob || prog == "sqlite3" && hasOtherDot(x.value) {
			p.opaque(prog + " may be told to start programs")
		}
	}
	asked := len(u.operands) > 1 && prog == "sqlite3" || u.given("-c", "--command", "-e", "--execute") != nil
	if stdin && !asked {
		p.opaque(prog + " commands from the input")
	}
	if prog != "sqlite3" || len(u.operands) == 0 || u.given("-readonly") != nil {
		return
	}
	file := *u.operands[0].word
	if at, uri := strings.CutPrefix(file.value, "file:"); uri && file.known {
		at, _, _ = strings.Cut(at, "?")
		file = knownWord(at)
	}
	if file.value != ":memory:" && file.value != "" {
		w.written(p, file, "sqlite3 writes its database", true)
	}
}

// hasOtherDot reports whether a text contains a sqlite3 command that is not in plainDots.
func hasOtherDot(text string) bool {
	for line := range strings.Lines(text) {
		if name, dot := strings.CutPrefix(line, "."); dot {
			name, _, _ = strings.Cut(strings.TrimSpace(name), " ")
			if !slices.Contains(plainDots, name) && !strings.ContainsAny(name, "./") { // ./x.db is a file
				return true
			}
		}
	}
	return false
}
