package skill

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	t.Parallel()
	full := "---\nname: notify\ndescription: >\n  Check notifications:\n  report new ones\nlicense: MIT\ncompatibility: needs gh\nmetadata:\n  author: ada\n  version: 1.2\n" +
		"allowed-tools: Bash(gh api *), Read\ndisable-model-invocation: true\nuser-invocable: false\nargument-hint: \"[repo]\"\nunknown: [1, 2]\n---\n\n# Do it\nrun {baseDir}/check.sh\n"
	s, err := Parse("notify", []byte(full))
	if err != nil {
		t.Fatal(err)
	}
	if s.Description != "Check notifications: report new ones" || s.License != "MIT" || s.Compatibility != "needs gh" || s.Metadata["version"] != "1.2" || s.Metadata["author"] != "ada" ||
		!slices.Equal(s.AllowedTools, []string{"Bash(gh api *)", "Read"}) || !s.Hidden || !s.Internal || s.ArgumentHint != "[repo]" || s.Body != "# Do it\nrun {baseDir}/check.sh" {
		t.Errorf("%+v", s)
	}
	ok := func(name, text string) Skill {
		t.Helper()
		s, err := Parse(name, []byte(text))
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		return s
	}
	ok("a", "\ufeff---\r\nname: a\r\ndescription: b\r\n---\r\nbody\r\n")
	if s := ok("a", "---\nname: a\ndescription: Use when: the user says 'go': now\n---\nx"); s.Description != "Use when: the user says 'go': now" {
		t.Errorf("a description with colons: %q", s.Description)
	}
	if s := ok("a", "---\nname: a\ndescription: d\nallowed-tools:\n  - Read\n  - Write\n---"); !slices.Equal(s.AllowedTools, []string{"Read", "Write"}) || s.Body != "" || len(s.Remarks) != 1 {
		t.Errorf("%+v", s)
	}
	if s := ok("a", "---\nname: a\ndescription: "+strings.Repeat("é", 2000)+"\n---\nx"); len([]rune(s.Description)) != maxDescription+1 || len(s.Remarks) != 1 {
		t.Errorf("%d, %v", len([]rune(s.Description)), s.Remarks)
	}
	for text, why := range map[string]string{
		"":                                      "does not begin with front matter",
		"# a skill":                             "does not begin with front matter",
		"---\nname: a\n":                        "has no end",
		"---\ndescription: b\n---":              "has no name",
		"---\nname: a\n---\nx":                  "has no description",
		"---\nname: b\ndescription: c\n---":     `it is called b, but its folder is "a"`,
		"---\nname: A\ndescription: c\n---":     `"A" cannot be its name`,
		"---\nname: a--b\ndescription: c\n---":  "cannot be its name",
		"---\nname: [a\n---":                    "cannot be read",
		"---\nname: &x a\ndescription: *x\n---": "anchors",
		"---\nname: a\ndescription: c\x00\n---": "not text",
		"---\nname: a\n" + strings.Repeat("# more\n", 4000) + "---":          "more than 16 KB",
		"---\nname: a\ndescription: c\n---\n" + strings.Repeat("x", MaxFile): "more than 256 KB",
	} {
		if _, err := Parse("a", []byte(text)); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%.40q: %v, want %q", text, err, why)
		}
	}
}

// Whatever a file holds, reading it ends, and what was read is what the convention allows.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "---\n---\n", "---\nname: a\ndescription: b\n---\nbody", "---\r\nname: 'a'\r\n---", "---\nname: a\ndescription: |\n  x\n   y\n---\n", "---\nmetadata: {a: [1, {b: c}]}\nname: a\n---",
		"---\nname: a\ndescription: !!binary x\n---", "---\n\tname: a\n---", "---\nallowed-tools: ((( ) , a\nname: a\ndescription: b: c\n---"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse("a", []byte(text))
		if err != nil {
			if s := err.Error(); s == "" || strings.Contains(s, "\n") {
				t.Errorf("no sentence: %q", s)
			}
			return
		}
		if s.Name != "a" || s.Description == "" || strings.ContainsAny(s.Description, "\n\r") {
			t.Errorf("%+v", s)
		}
		if out := Index([]Skill{s}); !s.Hidden && strings.Count(out, "<skill>") != 1 {
			t.Errorf("%q", out)
		}
	})
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func make1(t testing.TB, dir, name string) string {
	t.Helper()
	write(t, filepath.Join(dir, name, File), "---\nname: "+name+"\ndescription: does "+name+"\n---\nDo it.\n")
	return filepath.Join(dir, name)
}

// age makes files look as if they were written long ago, so that what is remembered of them is believed.
func age(t testing.TB, finder *Finder) {
	t.Helper()
	finder.mu.Lock()
	defer finder.mu.Unlock()
	for _, k := range finder.skills {
		k.at = k.at.Add(time.Hour)
	}
	for _, k := range finder.folders {
		k.at = k.at.Add(time.Hour)
	}
}

func TestTree(t *testing.T) {
	t.Parallel()
	dir := make1(t, t.TempDir(), "a")
	write(t, filepath.Join(dir, "scripts", "run.sh"), "echo")
	digest := func() string {
		t.Helper()
		tree, err := ReadTree(dir)
		if err != nil {
			t.Fatal(err)
		}
		return tree.Digest
	}
	last := digest()
	for what, change := range map[string]func() error{
		"bytes": func() error { return os.WriteFile(filepath.Join(dir, "scripts", "run.sh"), []byte("ECHO"), 0o644) },
		"mode":  func() error { return os.Chmod(filepath.Join(dir, "scripts", "run.sh"), 0o755) },
		"name":  func() error { return os.Rename(filepath.Join(dir, "scripts"), filepath.Join(dir, "bin")) },
		"link":  func() error { return os.Symlink(File, filepath.Join(dir, "README.md")) },
	} {
		if what == "name" {
			continue // last: the others need the old one
		}
		if err := change(); err != nil {
			t.Fatal(err)
		}
		now := digest()
		if now == last {
			t.Errorf("a change of %s is not seen", what)
		}
		last = now
	}
	if err := os.Rename(filepath.Join(dir, "scripts"), filepath.Join(dir, "bin")); err != nil || digest() == last {
		t.Error("another name is not seen", err)
	}
	last = digest()
	write(t, filepath.Join(dir, ".git", "config"), "x")
	write(t, filepath.Join(dir, "bin", "__pycache__", "x.pyc"), "x")
	if digest() != last {
		t.Error("what is not copied counts")
	}
}

func TestTreesThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	for why, spoil := range map[string]func(dir string) error{
		"more than 32 MB": func(dir string) error { // a file of 1 GB that takes no room
			f, err := os.Create(filepath.Join(dir, "model.bin"))
			if err != nil {
				return err
			}
			defer f.Close()
			return f.Truncate(1 << 30)
		},
		"more than 2000 files": func(dir string) error {
			for i := range MaxFiles + 1 {
				if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("f", i)), nil, 0o644); err != nil {
					return err
				}
			}
			return nil
		},
		"more than 16 deep":               func(dir string) error { return os.MkdirAll(filepath.Join(dir, strings.Repeat("d/", 40)), 0o755) },
		"secret is a link that leads out": func(dir string) error { return os.Symlink("/etc/passwd", filepath.Join(dir, "secret")) },
		"up is a link that leads out":     func(dir string) error { return os.Symlink("../other", filepath.Join(dir, "up")) },
		"d/l2 is a link that leads out": func(dir string) error {
			return errorsOf(os.Mkdir(filepath.Join(dir, "d"), 0o755), os.Symlink("..", filepath.Join(dir, "d", "l1")), os.Symlink("l1/../x", filepath.Join(dir, "d", "l2")))
		},
		"pipe is neither a file nor": func(dir string) error { return mkfifo(filepath.Join(dir, "pipe")) },
	} {
		dir := make1(t, t.TempDir(), "a")
		if err := spoil(dir); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := ReadTree(dir); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%v, want %q", err, why)
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("%s: took %s", why, took)
		}
	}
	dir := make1(t, t.TempDir(), "a")
	write(t, filepath.Join(dir, "d", "x"), "x")
	if err := errorsOf(os.Symlink("../SKILL.md", filepath.Join(dir, "d", "in")), os.Symlink("d/x", filepath.Join(dir, "x"))); err != nil {
		t.Fatal(err)
	}
	if tree, err := ReadTree(dir); err != nil || len(tree.Entries) != 4 {
		t.Errorf("links inside: %+v, %v", tree, err)
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	repo, home, user := filepath.Join(base, "repo"), filepath.Join(base, "home"), filepath.Join(base, "user")
	where := Where{Workspace: filepath.Join(repo, "sub"), Repository: repo, Channel: filepath.Join(home, "discord", "c"), Transport: filepath.Join(home, "discord"), Global: home, Agent: filepath.Join(home, "agents", "bo"),
		UserHome: user, ConfigHome: filepath.Join(user, ".config")}
	for i, dir := range []string{where.Workspace + "/.agents", where.Workspace + "/.claude", repo + "/.chorus", where.Channel, where.Agent, where.Transport, home, user + "/.agents", user + "/.config/agents", user + "/.config/chorus", user + "/.claude"} {
		make1(t, filepath.Join(dir, "skills"), "same")
		make1(t, filepath.Join(dir, "skills"), fmt.Sprint("s", i))
	}
	write(t, filepath.Join(home, "skills", "broken", File), "no")
	write(t, filepath.Join(home, "skills", "none", "README.md"), "no")
	make1(t, filepath.Join(base, "elsewhere"), "linked")
	err = errorsOf(os.Symlink(filepath.Join(base, "elsewhere", "linked"), filepath.Join(home, "skills", "linked")),
		os.Symlink(filepath.Join(base, "elsewhere", "linked"), filepath.Join(repo, ".chorus", "skills", "linked")),
		os.MkdirAll(filepath.Join(repo, ".claude"), 0o755), os.Symlink("../.chorus/skills", filepath.Join(repo, ".claude", "skills")))
	if err != nil {
		t.Fatal(err)
	}
	var finder Finder
	list, problems := finder.Find(where.Sources(), time.Now())
	var got, wrong []string
	for _, f := range list {
		if f.Wrong != "" {
			wrong = append(wrong, f.Folder+": "+f.Wrong)
		} else if f.Name != "same" {
			got = append(got, f.Source.Scope+" "+f.Name)
		}
	}
	want := "repository s0,repository s1,repository s2,channel s3,agent s4,transport s5,global s6,user s7,user s8,user s9,user s10"
	if strings.Join(got, ",") != want || len(problems) > 0 {
		t.Errorf("%s; %v", strings.Join(got, ","), problems)
	}
	// The link is of the repository's folder first, and its target is found once.
	if len(wrong) != 2 || !strings.HasPrefix(wrong[0], "linked: it is a link that leads out of the repository") || !strings.HasPrefix(wrong[1], "broken: its SKILL.md does not begin") {
		t.Errorf("%q", wrong)
	}
	if list[0].Dir != filepath.Join(where.Workspace, ".agents", "skills", "s0") {
		t.Errorf("the narrowest is not the first: %s", list[0].Dir)
	}
}

// What changes between two looks is seen, also where sizes and times of writing are the same.
func TestFindAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	make1(t, dir, "a")
	var finder Finder
	sources := []Source{{Scope: Global, Dir: dir}}
	look := func() map[string]string {
		list, _ := finder.Find(sources, time.Now())
		out := map[string]string{}
		for _, f := range list {
			out[f.Folder] = f.Tree.Digest + f.Wrong
		}
		return out
	}
	first := look()
	age(t, &finder)
	if again := look(); again["a"] != first["a"] {
		t.Error("another digest of the same")
	}
	info, err := os.Stat(filepath.Join(dir, "a", File))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "a", File), strings.Replace("---\nname: a\ndescription: does a\n---\nDo it.\n", "Do", "do", 1))
	if err := os.Chtimes(filepath.Join(dir, "a", File), info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if again := look(); again["a"] == first["a"] {
		t.Error("a write with the old time and size is not seen")
	}
	make1(t, dir, "b")
	if again := look(); len(again) != 2 {
		t.Errorf("a new skill is not seen: %v", again)
	}
	age(t, &finder)
	write(t, filepath.Join(dir, "b", "deep", "x"), "x")
	if again := look(); again["b"] == first["b"] {
		t.Error("a new file is not seen")
	}
	if err := os.RemoveAll(filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	if again := look(); len(again) != 1 {
		t.Errorf("it is still there: %v", again)
	}
}

// Thousands of skills are looked at within bounds, and the rest is named.
func TestFindThousands(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range 1200 {
		make1(t, dir, fmt.Sprintf("s%04d", i))
	}
	var finder Finder
	list, problems := finder.Find([]Source{{Scope: Global, Dir: dir}}, time.Now())
	if len(list) != MaxSkills || len(problems) != 1 || !strings.Contains(problems[0], "more than 500 skills; those behind s0499 are left out") {
		t.Errorf("%d, %v", len(list), problems)
	}
	var all []Skill
	for _, f := range list {
		f.Skill.Description = strings.Repeat("long ", 200)
		all = append(all, f.Skill)
	}
	if out := Index(all); len(out) > maxIndex+200 || !strings.Contains(out, "<name>s0000</name>") {
		t.Errorf("%d bytes", len(out))
	}
}

func TestIndex(t *testing.T) {
	t.Parallel()
	if out := Index(nil); out != "" {
		t.Error(out)
	}
	if out := Index([]Skill{{Name: "a", Description: "b", Hidden: true}}); out != "" {
		t.Error(out)
	}
	out := Index([]Skill{{Name: "hidden", Description: "b", Hidden: true}, {Name: "tags", Description: `Uses <tags> & "quotes"`}})
	if !strings.Contains(out, "<skill><name>tags</name><description>Uses &lt;tags&gt; &amp; &quot;quotes&quot;</description><location>@skills/tags/SKILL.md</location></skill>") || strings.Contains(out, "hidden") {
		t.Error(out)
	}
}

func TestTranslate(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"run {baseDir}/x.sh":              "run /v/a/x.sh",
		"run ${CLAUDE_SKILL_DIR}/x.sh":    "run /v/a/x.sh",
		"python .claude/skills/a/x.py":    "python /v/a/x.py",
		"`~/.agents/skills/a/x.py` or":    "`/v/a/x.py` or",
		"sh $HOME/.chorus/skills/a/x":     "sh /v/a/x",
		"sh ./.claude/skills/a/x":         "sh /v/a/x",
		"/src/a/x and /src/ab/x":          "/v/a/x and /src/ab/x",
		"scripts/x.py .claude/skills/b/y": "scripts/x.py .claude/skills/b/y",
		"other/.claude/skills/a/x stays":  "other/.claude/skills/a/x stays",
	} {
		if got := Translate(text, "a", "/src/a", "/v/a"); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func TestCalled(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"/review src/a.go": "review|src/a.go", "  /skill review  a b ": "review|a b ", "<@123> /review x": "review|x", "@Bo, /review": "review|", "@Big Bo /review x": "review|x",
		"/etc/passwd": "", "review": "", "look at /review": "", "/": "", "/Review": "", "/skill Review": "",
	} {
		name, args, ok := Called(text)
		got := ""
		if ok {
			got = name + "|" + args
		}
		if strings.TrimSpace(got) != strings.TrimSpace(want) {
			t.Errorf("%q: %q", text, got)
		}
	}
	s := Skill{Name: "a", Body: "Do $ARGUMENTS with {baseDir}/x"}
	if out := s.Call("that", "", "/v/a"); !strings.Contains(out, "Do that with /v/a/x") || !strings.Contains(out, "begins with /a calls") {
		t.Error(out)
	}
}
