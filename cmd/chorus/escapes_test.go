package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"chorus/internal/transport/repl"
)

// evil sets the clipboard, the title and a link, clears the screen and turns text around.
const evil = "evil\x1b]52;c;ZXZpbA==\x07\x1b]0;t\x07\x1b[2J\u009b2J\u202e\r"

// personAt is a person at a terminal with a home of their own.
type personAt struct {
	t         *testing.T
	home, dir string
}

func (s personAt) run(in string, args ...string) (out, errs string) {
	s.t.Helper()
	out, errs, _ = s.exits(in, args...)
	return out, errs
}

func (s personAt) exits(in string, args ...string) (out, errs string, code int) {
	s.t.Helper()
	var stdout, stderr bytes.Buffer
	env := map[string]string{"HOME": s.dir, "CHORUS_HOME": s.home, "USER": "ada", "PATH": os.Getenv("PATH")}
	c := &program{getenv: func(name string) string { return env[name] },
		console: repl.Console{In: strings.NewReader(in), Out: &stdout, Err: &stderr, OutTTY: true, ErrTTY: true}}
	code = c.run(args)
	return stdout.String(), stderr.String(), code
}

// exec runs a process of its own, without a terminal.
func (s personAt) exec(in string, args ...string) string {
	s.t.Helper()
	cmd := exec.Command("chorus", args...)
	cmd.Env = []string{"HOME=" + s.dir, "CHORUS_HOME=" + s.home, "USER=ada", "PATH=" + os.Getenv("PATH")}
	cmd.Stdin = strings.NewReader(in)
	out, _ := cmd.CombinedOutput() // a run that has to ask fails
	return string(out)
}

// kept saves a conversation's context and returns its id.
func kept(s personAt, session string) string {
	s.t.Helper()
	out, errs := s.run("", "context", "save", session, "--description", evil, "--json")
	var saved struct{ ID string }
	if err := json.Unmarshal([]byte(out), &saved); err != nil {
		s.t.Fatalf("%v: %s%s", err, out, errs)
	}
	return saved.ID
}

// Whatever others wrote, no command prints anything that steers the terminal it is printed on.
// Every command stands in one of the two lists. With --json a script reads what each of them prints, and why it failed.
func TestNothingSteersTheTerminal(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := personAt{t, filepath.Join(dir, "home"), dir}
	work := filepath.Join(dir, "work")
	for name, text := range map[string]string{
		"work/" + strings.ReplaceAll(evil, "\x07", "") + ".txt": evil, "work/notes.txt": evil,
		"work/.mcp.json":                    `{"mcpServers": {"story": {"command": "sh", "args": ["-c", "` + escaped(evil) + `"]}}}`,
		"home/config/bots/x.yaml":           "innerName: \"" + escaped(evil) + "\"\nsystemPrompt: \"" + escaped(evil) + "\"\n",
		"work/.agents/skills/evil/SKILL.md": "---\nname: evil\ndescription: \"" + escaped(evil) + "\"\nlicense: \"" + escaped(evil) + "\"\n---\n" + evil,
		"rules.json":                        `{"allow": ["tool:read:.*"], "ask": ["tool:bash:.*"]}`,
		"messages.jsonl":                    `{"author":"` + escaped(evil) + `","text":"` + escaped(evil) + `"}` + "\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(work)
	script := "!call bash {\"command\":\"echo " + escaped(evil) + "\",\"description\":\"" + escaped(evil) + "\"}\n!---\n!say " + evil + "\n"
	talked := s.exec(script, "run", "-y", "-m", "demo/script", "--sandbox", "host")
	asked := s.exec(script, "run", "-m", "demo/script", "--permissions", filepath.Join(dir, "rules.json"))
	s.exec("", "run", "-m", "demo/echo", "a title "+evil)
	listed, _ := s.run("", "thread", "list", "--json")
	ids := regexp.MustCompile(`"sessionId": "([^"]+)"`).FindAllStringSubmatch(listed, -1)
	if len(ids) < 3 {
		t.Fatalf("%d conversations: %s%s%s", len(ids), listed, talked, asked)
	}
	s.run("", "token", "create", "--name", "a "+evil)
	s.run("", "project", "create", "Site")
	s.run("", "task", "create", "a "+evil, "-d", evil, "-p", "site")
	s.run("", "note", "write", "Evil", "# "+evil, "-p", "site")
	var show [][]string
	for _, id := range ids {
		for _, words := range []string{"show", "export", "replay"} {
			show = append(show, []string{"thread", words, id[1]})
		}
		show = append(show, []string{"thread", "export", id[1], "--json"})
	}
	tried := map[string][][]string{
		"thread list": {{"thread", "list"}, {"thread", "list", "--json"}}, "thread search": {{"thread", "search", "evil"}}, "thread show": show, "thread export": nil, "thread replay": nil,
		"thread fork": {{"thread", "fork", ids[0][1]}}, "thread change": {{"thread", "change", ids[0][1], "--mode", evil}}, "thread steer": {{"thread", "steer", ids[0][1], evil}}, "thread abort": {{"thread", "abort", evil}},
		"approvals list": {{"approvals", "list"}}, "approvals show": {{"approvals", "show"}}, "approvals approve": {{"approvals", "approve", evil}}, "approvals deny": {{"approvals", "deny", evil}},
		"audit list": {{"audit", "list"}, {"audit", "list", "--json"}}, "audit export": {{"audit", "export"}, {"audit", "export", "--format", "jsonl"}}, "audit verify": {{"audit", "verify"}}, "cost": {{"cost"}}, "doctor": {{"doctor"}},
		"config check": {{"config", "check"}}, "config show": {{"config", "show"}, {"config", "show", "--bot", "x"}}, "config trust": {{"config", "trust"}}, "config schema": {{"config", "schema"}},
		"agent create": {{"agent", "create", evil}}, "agent list": {{"agent", "list"}}, "agent show": {{"agent", "show", evil}}, "agent config": {{"agent", "config", evil, "permissions", evil}}, "agent edit": {{"agent", "edit", evil, "--prompt", evil}}, "agent preview": {{"agent", "preview", "escaper", "--prompt", evil}, {"agent", "preview", evil}}, "agent destroy": {{"agent", "destroy", evil}},
		"permit profile show": {{"permit", "profile", "show", evil}, {"permit", "profile", "show", "standard"}}, "permit profile try": {{"permit", "profile", "try", "standard", "--deny", evil}}, "permit profile save": {{"permit", "profile", "save", "mine", "--deny", evil}}, "permit profile remove": {{"permit", "profile", "remove", evil, "--yes"}}, "permit words": {{"permit", "words", evil}},
		"permit allowed list": {{"permit", "allowed", "list"}}, "permit allowed remove": {{"permit", "allowed", "remove", evil}}, "permit check": {{"permit", "check", "--rules", "../rules.json", evil}},
		"permit explain": {{"permit", "explain", evil}, {"permit", "explain", "--rules", "../rules.json", "echo '" + evil + "'"}}, "permit narrow": {{"permit", "narrow", evil}}, "permit rights": {{"permit", "rights"}},
		"token list": {{"token", "list"}}, "token create": {{"token", "create", "--name", evil}}, "token link": {{"token", "link"}}, "token revoke": {{"token", "revoke", evil}},
		"tool": {{"tool", "list_files", "{}"}, {"tool", "read", `{"path":"notes.txt"}`}}, "models": {{"models", evil}}, "context render": {{"context", "render", "../messages.jsonl"}, {"context", "render", "--bot", "x"}}, "forget": {{"forget", evil, "--yes"}},
		"context save": {{"context", "save", ids[0][1], "--description", evil}, {"context", "save", evil}}, "context list": {{"context", "list", ids[0][1]}, {"context", "list", ids[0][1], "--json"}}, "context show": {{"context", "show", ids[0][1], evil}, {"context", "show", ids[0][1], kept(s, ids[0][1])}},
		"context restore": {{"context", "restore", ids[0][1], evil}}, "context delete": {{"context", "delete", ids[0][1], evil, "--yes"}},
		"schedule add": {{"schedule", "add", evil, evil}, {"schedule", "add", "daily", evil}}, "schedule list": {{"schedule", "list"}}, "schedule next": {{"schedule", "next", evil}},
		"schedule show": {{"schedule", "show", evil}}, "schedule pause": {{"schedule", "pause", evil}}, "schedule resume": {{"schedule", "resume", evil}}, "schedule remove": {{"schedule", "remove", evil, "--yes"}},
		"skill list": {{"skill", "list"}, {"skill", "list", "--all", "--json"}}, "skill show": {{"skill", "show", "evil"}, {"skill", "show", evil}}, "skill diff": {{"skill", "diff", "evil"}, {"skill", "diff", "evil", "--json"}},
		"skill approve": {{"skill", "approve", "evil"}, {"skill", "approve", evil}}, "skill disable": {{"skill", "disable", "evil"}}, "skill call": {{"skill", "call", evil, ids[0][1], evil}},
		"hook create": {{"hook", "create", evil, evil, "--on", evil}, {"hook", "create", evil, evil, "--on", "completed"}}, "hook list": {{"hook", "list"}}, "hook show": {{"hook", "show", evil}}, "hook edit": {{"hook", "edit", evil, "--enabled"}},
		"hook delete": {{"hook", "delete", evil, "--yes"}}, "hook runs": {{"hook", "runs", evil}}, "hook run": {{"hook", "run", evil}}, "hook fire": {{"hook", "fire", evil}}, "hook test": {{"hook", "test", evil}}, "hook preview": {{"hook", "preview", evil, evil, "--on", "completed"}},
		"mcp add": {{"mcp", "add", evil, "--", "sh"}, {"mcp", "add", "story", "--", evil}}, "mcp list": {{"mcp", "list"}, {"mcp", "list", "--json"}}, "mcp test": {{"mcp", "test", evil}, {"mcp", "test", "story"}},
		"mcp remove": {{"mcp", "remove", evil}}, "mcp login": {{"mcp", "login", evil}}, "mcp logout": {{"mcp", "logout", evil}},
		"worker": {{"worker", "--slots", "0"}, {"worker", "--slots", evil}, {"worker", evil}}, "worker list": {{"worker", "list"}, {"worker", "list", "--json"}},
		"node list": {{"node", "list"}, {"node", "list", "--json"}}, "node drain": {{"node", "drain", evil}}, "node label": {{"node", "label", evil, "--add", evil}},
		"process list": {{"process", "list"}}, "process show": {{"process", "show", evil}}, "process logs": {{"process", "logs", evil}}, "process kill": {{"process", "kill", evil}},
		"process hook": {{"process", "hook", evil, evil}}, "process understand": {{"process", "understand", evil}, {"process", "understand", "when it prints '" + evil + "', tell me"}},
		"memory list": {{"memory", "list"}}, "memory show": {{"memory", "show", evil}, {"memory", "show", "MEMORY.md"}}, "memory edit": {{"memory", "edit", "MEMORY.md", "--text", evil}},
		"memory forget": {{"memory", "forget", "SYSTEM.md", evil, "--yes"}}, "memory history": {{"memory", "history", "MEMORY.md"}, {"memory", "history", evil}}, "memory restore": {{"memory", "restore", evil}}, "memory recall": {{"memory", "recall", evil}},
		"project create": {{"project", "create", evil}}, "project list": {{"project", "list"}}, "project show": {{"project", "show", evil}, {"project", "show", "site"}}, "project graph": {{"project", "graph", "site"}}, "project edit": {{"project", "edit", "site", "--name", evil}},
		"project activate": {{"project", "activate", evil, evil}}, "project channel": {{"project", "channel", "site", evil}}, "project control": {{"project", "control", "site", evil}}, "project of-channel": {{"project", "of-channel", evil}},
		"repo add": {{"repo", "add", "clone", "--url", evil, "-p", "site"}, {"repo", "add", "link", "--path", evil, "-p", "site"}}, "repo list": {{"repo", "list"}},
		"task create": {{"task", "create", evil, "-p", evil}, {"task", "create", evil, "-p", "site"}}, "task list": {{"task", "list"}, {"task", "list", "--json"}}, "task edit": {{"task", "edit", evil, "--title", evil}},
		"task resolve-conflict": {{"task", "resolve-conflict", evil}}, "task reopen": {{"task", "reopen", evil, evil}}, "task reject-plan": {{"task", "reject-plan", evil, evil}}, "task set-status": {{"task", "set-status", evil, evil}}, "task chain-health": {{"task", "chain-health", "-p", evil}}, "task depend": {{"task", "depend", evil, evil}}, "task undepend": {{"task", "undepend", evil, evil}},
		"note list": {{"note", "list", "-p", "site"}}, "note write": {{"note", "write", evil, evil, "-p", "site"}}, "note append": {{"note", "append", evil, evil, "-p", "site"}}, "note read": {{"note", "read", "Evil", "-p", "site"}},
		"note delete": {{"note", "delete", evil, "-p", "site", "--yes"}}, "note promote": {{"note", "promote", "Evil", "-p", "site"}}, "note specs": {{"note", "specs", "-p", "site"}}, "note thread": {{"note", "thread", "-p", "site"}},
		"call":         {{"call"}, {"call", evil}, {"call", "list_tasks"}, {"call", "get_task", `{"task_id":"` + escaped(evil) + `"}`}},
		"project read": {{"project", "read", evil, "-p", "site"}}, "project search": {{"project", "search", evil, "-p", "site"}}, "project run": {{"project", "run", evil, evil}}, "work restart-server": {{"work", "restart-server", evil}},
		"git status": {{"git", "status", "-p", "site"}, {"git", "status", "--repo", evil}}, "git log": {{"git", "log", "-p", evil}}, "git diff": {{"git", "diff", "-p", "site", "--base", evil}}, "git files": {{"git", "files", "-p", evil}},
		"task watch": {{"task", "watch", evil}}, "work status": {{"work", "status"}}, "work events": {{"work", "events"}}, "work tokens": {{"work", "tokens"}}, "work control": {{"work", "control", evil}},
		"thread share": {{"thread", "share", ids[0][1]}, {"thread", "share", evil}}, "thread shares": {{"thread", "shares", ids[0][1]}}, "thread unshare": {{"thread", "unshare", ids[0][1], evil}}, "thread why": {{"thread", "why", ids[0][1]}, {"thread", "why", ids[0][1], evil}, {"thread", "why", evil}}, "thread delete": {{"thread", "delete", evil, "--yes"}}, "thread restore": {{"thread", "restore", evil}}, "thread clear": {{"thread", "clear", evil}}, "backup": {{"backup", filepath.Join(dir, "no", evil)}}, "restore": {{"restore", evil}},
		"migrate": {{"migrate"}}, "sample": {{"sample", filepath.Join(dir, evil)}}, "docs": {{"docs", evil}, {"docs", "models"}, {"docs", "--search", evil}}, "init": {{"init", "--print"}, {"init", "--model", evil}},
		"completion": {{"completion", evil}}, "man": {{"man"}}, "version": {{"version"}}, "import lca": {{"import", "lca", evil}}, "import chapter3": {{"import", "chapter3", evil}}, "import chapter2": {{"import", "chapter2", evil}},
	}
	for group, words := range map[string][]string{
		"project": {"pause", "resume", "delete", "channels", "commit", "push", "branch", "merge"},
		"git":     {"commit", "push", "branch", "checkout", "merge", "pr"},
		"task":    {"show", "stop", "restart", "delete", "approve", "skip", "result", "diff", "tree", "error", "plan", "approve-plan", "delete-plan"},
	} {
		for _, word := range words {
			tried[group+" "+word] = [][]string{{group, word, evil}}
		}
	}
	// They stay, and have stories of their own; the file of thread attach and the bytes of thread blob come from the person.
	elsewhere := []string{"run", "chat", "serve", "sim discord", "sim llm", "thread watch", "thread attach", "thread blob", "keep", "mcp serve", "acp"}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		name := strings.TrimPrefix(cmd.CommandPath(), "chorus ")
		if _, ok := tried[name]; len(cmd.Commands()) == 0 && !ok && !slices.Contains(elsewhere, name) {
			t.Errorf("say here how `chorus %s` prints what others wrote", name)
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk((&program{getenv: os.Getenv}).root())
	own := regexp.MustCompile("\x1b\\[[0-9;]*m")
	for name, lines := range tried {
		for _, args := range lines {
			out, errs := s.run("", args...)
			texts := []string{out, errs}
			if words := append(strings.Fields(name), "--json"); s.takes(words) {
				args := slices.Insert(slices.Clone(args), len(words)-1, "--json")
				out, errs, code := s.exits("", args...)
				if why := unreadable(out, errs, code); why != "" {
					t.Errorf("chorus %q, exit %d: %s\n%s\n%s", args, code, why, clipped(out), clipped(errs))
				}
				texts = append(texts, out, errs)
			}
			for _, text := range texts {
				if at := strings.IndexAny(own.ReplaceAllString(text, ""), "\x1b\x07\u009b\u202e"); at >= 0 {
					t.Errorf("chorus %s: %q", name, clipped(text))
				}
			}
		}
	}
	if out, _ := s.run("", show[0]...); !strings.Contains(out, "evil") {
		t.Errorf("nothing was there to print: %s", out)
	}
}

// takes reports whether the command of a line has the flag at its end.
func (s personAt) takes(line []string) bool {
	cmd, rest, err := (&program{getenv: os.Getenv}).root().Find(line)
	return err == nil && len(rest) == 1 && cmd.Flags().Lookup(strings.TrimPrefix(rest[0], "--")) != nil
}

// unreadable says why a script cannot read what a command printed for it: values of JSON, or an object in the last line on standard error.
func unreadable(out, errs string, code int) string {
	n, err := countObjects(strings.NewReader(out), nil)
	if err != nil {
		return "what it printed is not JSON: " + err.Error()
	}
	if strings.TrimSpace(out) != "" || n > 0 {
		return "" // also of a check that failed: what it found says why
	}
	if code == 0 {
		return "it printed nothing"
	}
	lines := strings.Split(strings.TrimSpace(errs), "\n")
	if n, err := countObjects(strings.NewReader(lines[len(lines)-1]), []fieldCheck{{path: []string{"error"}}, {path: []string{"kind"}}}); err != nil || n != 1 {
		return "it does not say why as JSON"
	}
	return ""
}

// escaped is a text inside of the quotes of JSON and YAML.
func escaped(text string) string {
	return strings.NewReplacer("\x1b", `\u001b`, "\x07", `\u0007`, "\r", `\r`, "\u009b", `\u009b`, "\u202e", `\u202e`).Replace(text)
}

func clipped(text string) string {
	if at := strings.IndexAny(text, "\x1b\x07\u009b\u202e"); at > 100 {
		text = text[at-100:]
	}
	return text[:min(len(text), 400)]
}
