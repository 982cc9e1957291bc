package gate

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"chorus/internal/agent"
	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/tool"
	"chorus/internal/tool/files"
	"chorus/internal/tool/search"
	"chorus/internal/transcript"
)

// fileAttack is a call of a file tool that would write what git starts or what is outside, or show what must not be read.
type fileAttack struct {
	setup string // a script in the workspace
	tool  string
	args  string
	swap  string // a script between the moment at which the call is judged and the one at which it runs
}

// The workspace of every attack. What is kept may not change, and the secrets may not be shown.
const attackedPlace = `git init -q .; git config user.name a; git config user.email a@example.com; git commit -q --allow-empty -m first
	echo API=inner-secret > .env; echo plain > notes.txt; mkdir docs; echo doc > docs/doc.md
	mkdir ../out; echo outer-secret > ../out/file`

// keptPlace lists everything that git starts something of, and what is outside.
const keptPlace = `set +e; for d in .git meta store sub/.git .git/modules/sub .git/worktrees/tree; do cat "$d"; ls "$d/hooks"; cat "$d/config" "$d/config.worktree"; done 2>/dev/null
	cat .gitconfig; ls .tools hooks evil/HEAD; find ../out; cat ../out/*`

func addPatch(name string) string {
	return `{"patch":"*** Begin Patch\n*** Add File: ` + name + `\n+evil\n*** End Patch\n"}`
}

func writing(name string) string { return `{"path":"` + name + `","content":"evil\n"}` }

var fileAttacks = map[string]fileAttack{
	"git's settings":                 {tool: "write", args: writing(".git/config")},
	"in capitals":                    {tool: "write", args: writing(".GIT/../.git/config")},
	"by dots":                        {tool: "write", args: writing("docs/.././/.git/./hooks/pre-commit")},
	"by the whole path":              {tool: "write", args: `{"path":"WS/.git/hooks/pre-commit","content":"evil\n"}`},
	"by another name of the root":    {tool: "write", args: writing("@workspace/.git/hooks/pre-commit")},
	"a link to the settings":         {setup: `ln -s .git/config settings.ini`, tool: "write", args: writing("settings.ini")},
	"a link to the hooks":            {setup: `ln -s ../.git/hooks docs/samples`, tool: "apply_patch", args: addPatch("docs/samples/pre-commit")},
	"links of links":                 {setup: `ln -s .git a; ln -s a/hooks b; ln -s ../b docs/c`, tool: "write", args: writing("docs/c/pre-commit")},
	"lines of a linked file":         {setup: `ln -s .git/config l`, tool: "hashline_edit", args: `{"path":"l","edits":[{"op":"append","lines":["[core]","fsmonitor = evil"]}]}`},
	"text of a linked file":          {setup: `ln -s .git/config l`, tool: "edit", args: `{"path":"l","old_string":"[core]","new_string":"[core]\nfsmonitor = evil"}`},
	"a repository below":             {setup: `git init -q sub`, tool: "write", args: writing("sub/.git/config")},
	"a .git that leads elsewhere":    {setup: `mkdir sub`, tool: "write", args: `{"path":"sub/.git","content":"gitdir: ../evil\n"}`},
	"a .git that is elsewhere":       {setup: `rm -rf .git; git init -q --separate-git-dir=meta .`, tool: "write", args: writing("meta/hooks/pre-commit")},
	"a bare repository":              {setup: `git init -q --bare store`, tool: "write", args: writing("store/config")},
	"a submodule's":                  {setup: `git -c protocol.file.allow=always submodule --quiet add "$PWD" sub; ln -s .git/modules/sub m`, tool: "write", args: writing("m/config")},
	"a worktree's":                   {setup: `git worktree add -q ../tree; ln -s .git/worktrees/tree w`, tool: "write", args: writing("w/config.worktree")},
	"hooks among the files":          {setup: `mkdir .tools; git config core.hooksPath .tools`, tool: "write", args: writing(".tools/pre-commit")},
	"hooks that are not there":       {setup: `git config core.hooksPath .tools/hooks`, tool: "apply_patch", args: addPatch(".tools/hooks/pre-commit")},
	"hooks behind a link":            {setup: `mkdir hooks; ln -s hooks .tools; git config core.hooksPath .tools`, tool: "write", args: writing("hooks/pre-commit")},
	"settings among the files":       {setup: `touch .gitconfig; git config include.path ../.gitconfig`, tool: "write", args: writing(".gitconfig")},
	"settings that are not there":    {setup: `git config include.path "$PWD/.gitconfig"`, tool: "write", args: writing(".gitconfig")},
	"a repository in pieces":         {tool: "apply_patch", args: `{"patch":"*** Begin Patch\n*** Add File: evil/config\n+x\n*** Add File: evil/objects/x\n+x\n*** Add File: evil/refs/x\n+x\n*** Add File: evil/HEAD\n+x\n*** End Patch\n"}`},
	"a repository's last piece":      {setup: `mkdir -p evil/objects evil/refs; touch evil/config`, tool: "write", args: writing("evil/HEAD")},
	"a file that is moved":           {tool: "apply_patch", args: `{"patch":"diff --git a/notes.txt b/.git/hooks/pre-commit\nrename from notes.txt\nrename to .git/hooks/pre-commit\n"}`},
	"what is above":                  {tool: "write", args: writing("../out/new")},
	"what is above, by a root":       {tool: "write", args: writing("@workspace/../out/new")},
	"what is above, by the system":   {tool: "write", args: `{"path":"/proc/self/cwd/../out/new","content":"x"}`},
	"what a link leads out to":       {setup: `ln -s ../out away`, tool: "write", args: writing("away/new")},
	"what a link leads out to, read": {setup: `ln -s "$PWD/../out/file" away`, tool: "read", args: `{"path":"away"}`},
	"what is out, listed":            {setup: `ln -s ../out away`, tool: "list_files", args: `{"path":"away"}`},
	"what is out, searched":          {setup: `ln -s ../out away`, tool: "search_files", args: `{"query":"outer","path":"away"}`},
	"an open file":                   {setup: `ln -s /proc/self/fd/0 l`, tool: "read", args: `{"path":"l"}`},
	"the system's open files":        {tool: "read", args: `{"path":"/dev/fd/0"}`},
	"the system's environment":       {setup: `ln -s ../../../../../../../../../../proc/self/environ l`, tool: "read", args: `{"path":"l"}`},
	"a pipe that is read":            {setup: `mkfifo p`, tool: "read", args: `{"path":"p"}`},
	"a pipe that is written":         {setup: `mkfifo p`, tool: "write", args: writing("p")},
	"a pipe that is searched":        {setup: `mkfifo p`, tool: "search_files", args: `{"query":"x","path":"p"}`},
	"a pipe that is listed":          {setup: `mkfifo p`, tool: "list_files", args: `{"path":"p"}`},
	"a pipe that ignores":            {setup: `mkfifo .gitignore`, tool: "list_files", args: `{}`},
	"a file without end":             {setup: `printf text > big; truncate -s 1T big`, tool: "read", args: `{"path":"big"}`},
	"a file without end, searched":   {setup: `printf '%09000d' 7 > big; truncate -s 1T big`, tool: "search_files", args: `{"query":"nothing here"}`},
	"a file without end, changed":    {setup: `printf text > big; truncate -s 1T big`, tool: "edit", args: `{"path":"big","old_string":"text","new_string":"x"}`},
	"a file that becomes a link":     {tool: "write", args: writing("notes.txt"), swap: `rm notes.txt; ln -s .git/config notes.txt`},
	"a folder that becomes a link":   {tool: "write", args: writing("docs/pre-commit"), swap: `rm -r docs; ln -s .git/hooks docs`},
	"a folder that leads out":        {tool: "apply_patch", args: addPatch("docs/new"), swap: `rm -r docs; ln -s ../out docs`},
	"a link that leads elsewhere":    {setup: `ln -s notes.txt l`, tool: "write", args: writing("l"), swap: `ln -sf .git/config l`},
	"a folder that becomes git's":    {setup: `mkdir -p store/objects store/refs`, tool: "write", args: writing("store/config"), swap: `touch store/HEAD`},
	"a pipe in place of a file":      {tool: "edit", args: `{"path":"notes.txt","old_string":"plain","new_string":"x"}`, swap: `rm notes.txt; mkfifo notes.txt`},
	"a secret":                       {tool: "read", args: `{"path":".env"}`},
	"a secret behind a link":         {setup: `ln -s .env l`, tool: "read", args: `{"path":"l"}`},
	"a secret behind links":          {setup: `ln -s .. docs/up; ln -s docs/up/.env l`, tool: "read", args: `{"path":"l"}`},
	"a secret that is searched":      {tool: "search_files", args: `{"query":"API="}`},
	"a secret that is searched near": {setup: `ln -s .env l`, tool: "search_files", args: `{"query":"API=","path":"l"}`},
	"a secret by an edit":            {tool: "edit", args: `{"path":".env","old_string":"API=","new_string":"API= "}`},
	"a secret by a linked edit":      {setup: `ln -s .env l`, tool: "edit", args: `{"path":"l","old_string":"API=","new_string":"API= "}`},
	"a secret by a wrong patch":      {tool: "apply_patch", args: `{"patch":"--- a/.env\n+++ b/.env\n@@ -1 +1 @@\n-x\n+y\n"}`},
	"a secret by a wrong line":       {tool: "hashline_edit", args: `{"path":".env","edits":[{"op":"replace","pos":"1#ZZ","lines":["x"]}]}`},
	"a secret after the question":    {tool: "read", args: `{"path":"notes.txt"}`, swap: `ln -sf .env notes.txt`},
	"a secret's other name":          {setup: `ln .env l`, tool: "read", args: `{"path":"l"}`},
	"a linked secret's other name":   {setup: `ln .env docs/l; ln -s docs/l k`, tool: "read", args: `{"path":"k"}`},
	"a deep secret's other name":     {setup: `mkdir -p a/b; mv .env a/b/.env; ln a/b/.env docs/l`, tool: "read", args: `{"path":"docs/l"}`},
	"another name that is searched":  {setup: `ln .env docs/l`, tool: "search_files", args: `{"query":"API="}`},
	"another name, searched near":    {setup: `ln .env docs/l`, tool: "search_files", args: `{"query":"API=","path":"docs/l"}`},
	"another name by an edit":        {setup: `ln .env l`, tool: "edit", args: `{"path":"l","old_string":"API=","new_string":"API= "}`},
	"another name by a wrong patch":  {setup: `ln .env l`, tool: "apply_patch", args: `{"patch":"--- a/l\n+++ b/l\n@@ -1 +1 @@\n-x\n+y\n"}`},
	"another name by a wrong line":   {setup: `ln .env l`, tool: "hashline_edit", args: `{"path":"l","edits":[{"op":"replace","pos":"1#ZZ","lines":["x"]}]}`},
	"another name after the yes":     {tool: "read", args: `{"path":"notes.txt"}`, swap: `ln -f .env notes.txt`},
	"another name of the settings":   {setup: `ln .git/config l`, tool: "write", args: writing("l")},
	"text of the settings by it":     {setup: `ln .git/config l`, tool: "edit", args: `{"path":"l","old_string":"[core]","new_string":"[core]\nfsmonitor = evil"}`},
	"a secret after the search":      {tool: "search_files", args: `{"query":"API=","path":"docs"}`, swap: `rm -r docs; ln -s . docs`},
}

// TestFileAttacks makes the calls in a real workspace under every built-in profile, and under one that keeps a file from being read.
// What is asked for or refused does not run; what runs changes nothing that git starts, leaves the workspace nowhere, shows no
// secret and ends.
func TestFileAttacks(t *testing.T) {
	t.Parallel()
	place := t.TempDir()
	script(t, place, "mkdir ws; cd ws; "+attackedPlace)
	profiles := map[string]config.Profile{"mine": {Allow: []string{`.*`}, Deny: []string{`tool:read:(?:.*/)?\.env`}}}
	for name, a := range fileAttacks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, profile := range []string{"open", "standard", "guarded", "locked", "mine"} {
				a.make(t, place, &config.Bot{Permissions: profile, Profiles: profiles})
			}
		})
	}
}

// make makes the call in a copy of a place.
func (a fileAttack) make(t *testing.T, place string, bot *config.Bot) {
	t.Helper()
	profile := bot.Permissions
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(base, "ws")
	script(t, base, "cp -R '"+place+"/.' .; cd ws; "+a.setup)
	roots, err := files.NewRoots(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer roots.Close()
	set, err := tool.NewSet(append(files.Tools(roots), search.New(roots, search.Options{Ripgrep: "-"}))...)
	if err != nil {
		t.Fatal(err)
	}
	found, args, err := set.Resolve(a.tool, []byte(strings.ReplaceAll(a.args, "WS", dir)))
	if err != nil {
		t.Fatal(err)
	}
	g := newGate(bot, true)
	g.Place.Workspace, g.Place.Sandboxed = dir, true
	touches := found.Access(args)
	ruling := g.Judge(agent.ProposedCall{Tool: found, Args: args, Touches: touches, Senders: []transcript.Sender{said(ada, chat.Terms{})}}, chat.Principal{})
	if ruling.Verdict != approval.Allow {
		return
	}
	if a.swap != "" {
		script(t, dir, a.swap)
	}
	before := script(t, dir, keptPlace+"; true")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	res, err := found.Run(tool.WithCall(ctx, tool.Call{ID: "c", Touches: touches, Hides: ruling.Hides}), args)
	if err != nil {
		t.Errorf("%s: %v", profile, err)
	}
	text := res.Blocks.Text()
	if after := script(t, dir, keptPlace+"; true"); after != before {
		t.Errorf("%s: %q changed\n%s\nto\n%s", profile, text, before, after)
	}
	if strings.Contains(text, "outer-secret") || strings.Contains(text, "PATH=") || profile == "mine" && strings.Contains(text, "inner-secret") {
		t.Errorf("%s: it showed %q", profile, text)
	}
}

func script(t *testing.T, dir, text string) string {
	t.Helper()
	cmd := exec.Command("sh", "-ec", text)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return string(out)
}
