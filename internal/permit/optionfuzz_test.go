//go:build unix

package permit

import (
	"context"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"chorus/internal/permit/canonical"
	"chorus/internal/permit/permittest/effects"
)

// optionPieces are what command lines are made of: a program, then words of it and of all.
var optionPieces = map[string][]string{
	"sort":    {"-o", "--output", "--outp", "--output=", "--compress-program", "--comp=", "--compress-program=./x.sh", "-S", "32k", "-S32k", "-k", "1", "-t", "-u", "-n", "--key", "-T", ".", "--files0-from", "big", "-uo", "--sort", "-c"},
	"sed":     {"-e", "-n", "-f", "e.sed", "-i", "-i.bak", "--expression=", "--file=", "--expr", "1e ./x.sh", "1e./x.sh", "p", "s/one/two/", "s/o/.\\/x.sh/e", "w ../outside/new", "$!N", "a\\", "a x", "-E", "-s", "-l", "5", "--in-place", "-z", "}", "{", "b", ":a", "e"},
	"awk":     {"-f", "e.awk", "-v", "x=1", "-F", ":", "BEGIN{system(\"./x.sh\")}", "{print}", "{print > \"../outside/new\"}", "BEGIN{print 1 / 2 > \"../outside/new\"}", "/\"/", "-W", "--", "BEGIN{x=(1)/2; print \"/\" > \"../outside/new\"}"},
	"tar":     {"c", "x", "t", "f", "cf", "cIf", "-c", "-f", "-cf", "t.tar", "a.tar", "-I", "--use-comp", "--to-command", "--checkpoint=1", "--checkpoint-action=exec=./x.sh", "-C", "..", "../outside", "--remove-files", "canary", "-xf", "-O", "--file", "--dir", "-F", "-g", "--index-file", "-T", "list", "-M", "-L1"},
	"find":    {"-delete", "-exec", "rm", "canary", "{}", ";", "+", "-name", "-fprint", "-fls", "-maxdepth", "0", "(", ")", "!", "-o", "-a", "-ok", "touch", "-type", "f", "-D", "exec", "-prune", "-quit", "-newermt", "-L"},
	"split":   {"--filter", "--filter=", "--filt=./x.sh", "-l", "1", "-b", "-d", "-a", "-n", "1/2", "x", "--verbose", "../outside/x", "-t"},
	"git":     {"log", "diff", "status", "rebase", "fetch", "clone", "-1", "--output", "--outp=", "--output=../outside/new", "-x", "-x./x.sh", "--exec", "HEAD~1", "-u", "--upload-pack", "../remote.git", "c", "-c", "core.fsmonitor=./x.sh", "-C", "..", "-p", "--stat", "-i", "--no-pager", "-q"},
	"zip":     {"x.zip", "-T", "-TT", "-q", "-qT", "-m", "canary", "-O", "-lf", "-r", "-j", "--out", "--unzip-command", "-b"},
	"env":     {"-i", "-u", "A", "-S", "rm canary", "rm", "canary", "A=b", "-C", "..", "--", "-", "--split", "--unset", "--chdir", "touch"},
	"xargs":   {"-a", "list", "-I", "{}", "-i", "-n", "1", "-0", "rm", "canary", "touch", "echo", "--replace", "--max-lines", "-L", "-d", "x", "-e", "-E", "sort", "sed", "-P"},
	"nice":    {"-n", "5", "-5", "--adj", "rm", "canary", "--", "timeout", "env", "-k", "-s", "9", "touch", "sed", "1e ./x.sh", "sort"},
	"cp":      {"-t", "-T", "-S", "-a", "--target", "--target-directory=", "-r", "--suffix", "sub", "../outside", "-b", "--backup", "-u", "--parents", "-tu"},
	"ln":      {"-s", "-t", "-T", "-S", "--suffix", "sub", "../outside", "-f", "-r", "-b", "-st", "--target="},
	"install": {"-m", "755", "-d", "-D", "-t", "-T", "-S", "-o", "--strip-program=./x.sh", "-s", "sub", "../outside", "-b", "-Dt", "--strip-pro", "--mode"},
	"tee":     {"-a", "-i", "-p", "--append", "--output-error", "sub/h", "../outside"},
	"uniq":    {"-c", "-d", "-f", "1", "-w", "-s", "--group", "--skip-fields", "../outside/new", "-2", "+1"},
	"mkdir":   {"-p", "-m", "755", "../outside/d", "--mode", "sub/d", "-v"},
	"cd":      {"sub", "nosuch", "..", "&&", ";", "||", "echo", ">", "g2", "../g2", "../../g2", "{", "}", "(", ")", "!", "|", "&", "true", "cd", "../outside/new", "command", "if", "then", "fi"},
}

var commonPieces = []string{"f", "--", "-", "../outside/new", "./x.sh", "=../outside/new", "=./x.sh", "\"$x\"", "$x", "*", "-h"}

// Options are read as the programs read them: generated command lines that were allowed start, write and remove nothing
// that the rules do not allow. SHELL_FUZZ says for how long; by default it is a few seconds.
func TestJudgeAndProgramsAgree(t *testing.T) {
	t.Parallel()
	long, err := time.ParseDuration(os.Getenv("SHELL_FUZZ"))
	if err != nil {
		long = 3 * time.Second
	}
	p := effects.New(t)
	profile := mustCompile(t, Rules{
		Allow: []string{`tool:bash:(sort|sed|awk|tar|find|split|git (log|diff|status|rebase|fetch|clone)|zip|cp|ln|install|tee|uniq|mkdir|env|xargs|nice|timeout|cd|echo|true|command)( .*)?`},
		Deny:  []string{`tool:bash:(.*/)?(rm|touch)( .*)?`}, Ask: []string{`tool:bash:.*`},
	})
	names := slices.Sorted(maps.Keys(optionPieces)) // or a seed would not say what was tried
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 2))
	tried, allowed := 0, 0
	fresh := ""
	var before []string // what ran last: a program that one of them started may have been slow
	for end := time.Now().Add(long); time.Now().Before(end); tried++ {
		name := names[r.IntN(len(names))]
		command := name
		for range 1 + r.IntN(6) {
			pieces := optionPieces[name]
			if r.IntN(4) == 0 {
				pieces = commonPieces
			}
			piece := pieces[r.IntN(len(pieces))]
			if name != "cd" && !strings.HasPrefix(piece, "\"$") && piece != "$x" && piece != "*" {
				piece = "'" + strings.ReplaceAll(piece, "'", `'\''`) + "'"
			}
			if r.IntN(8) != 0 {
				command += " "
			}
			command += piece
		}
		if profile.Judge([]Request{{Tool: "bash", Command: command}}, JudgeOptions{Workspace: filepath.Join(p.Dir, "ws")}).Verdict != Allow {
			continue
		}
		text, err := canonical.Text(command)
		if err != nil {
			t.Fatalf("%q is allowed and has no canonical text: %v", command, err)
		}
		allowed++
		if fresh == "" || projectMarks(p) != fresh || hasLinks(p.Dir) {
			p.Reset(t)
			fresh = projectMarks(p)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		_ = p.Command(ctx, filepath.Join(p.Dir, "ws"), text).Run() // how it ends does not matter
		cancel()
		if got := projectMarks(p); got != fresh {
			t.Errorf("seed %d: %q was allowed and did something: %s\nbefore it ran %q", seed, command, got, before)
		}
		before = append(before[max(0, len(before)-9):], command)
	}
	t.Logf("%d commands, %d allowed", tried, allowed)
	if allowed == 0 {
		t.Error("nothing was allowed: this proves nothing")
	}
}

// hasLinks says whether one of the commands before made a link. What is written through it is not what this one's text says:
// that is for the sandbox to stop.
func hasLinks(dir string) bool {
	found := false
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		found = found || err == nil && entry.Type()&fs.ModeSymlink != 0
		return nil
	})
	return found
}

// projectMarks are the files beside the workspace, and those in it that forbidden programs make or remove.
func projectMarks(p *effects.Project) string {
	var out []string
	for _, pattern := range []string{"*", "outside/*", "ws/PWNED", "ws/sub/PWNED", "ws/canary", "ws/.git/config"} {
		found, _ := filepath.Glob(filepath.Join(p.Dir, pattern)) // the patterns are valid
		out = append(out, found...)
	}
	precious, _ := os.ReadFile(filepath.Join(p.Dir, "outside/precious"))
	return strings.ReplaceAll(strings.Join(out, " "), p.Dir, "") + " " + string(precious)
}
