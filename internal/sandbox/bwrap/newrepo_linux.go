package bwrap

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"chorus/internal/gitsettings"
)

// A workspace without a repository has nothing to guard, and a command that creates one
// writes its settings and hooks. Those that start nothing stay. The rest is set aside
// before the next command, for which the repository is guarded.

// harmless matches the settings that start no program and lead nowhere, in git's
// listing format. Any other setting is not known to be harmless.
var harmless = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^(` + strings.Join([]string{
		`core\.(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|autocrlf|eol|safecrlf|quotepath|abbrev|` +
			`longpaths|sparsecheckout|sparsecheckoutcone|untrackedcache|preloadindex|protecthfs|protectntfs|whitespace|commentchar|trustctime|checkstat)`,
		`(user|author|committer)\.(name|email)`, `init\.defaultbranch`,
		`remote\..+\.(url|pushurl|fetch|push|tagopt|prune|mirror|promisor|partialclonefilter)`, `remote\.pushdefault`,
		`branch\..+\.(remote|merge|rebase|pushremote|description)`, `branch\.(autosetupmerge|autosetuprebase|sort)`,
		`extensions\.(objectformat|worktreeconfig|partialclone|refstorage|preciousobjects|relativeworktrees)`,
		`pull\.(rebase|ff)`, `push\.(default|autosetupremote|followtags)`, `fetch\.(prune|prunetags|parallel)`, `merge\.(ff|conflictstyle|log|stat)`,
		`rebase\.(autostash|autosquash|updaterefs)`, `rerere\.(enabled|autoupdate)`, `gc\.auto`, `index\.(sparse|skiphash|threads|version)`, `advice\.[a-z]+`, `color\.[a-z]+`,
		`status\.(short|branch|showuntrackedfiles)`, `log\.(date|decorate|follow)`, `diff\.(renames|algorithm|colormoved|mnemonicprefix|noprefix)`,
		`submodule\..+\.(url|active|branch)`, `submodule\.(active|recurse)`,
	}, "|") + `)$`)
})

// clearNewRepository removes whatever git would start from a repository that a command made,
// and returns what that was. dotGit is where the repository would be.
func clearNewRepository(dotGit string) (note string, err error) {
	info, err := os.Lstat(dotGit)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", err
	case !info.IsDir(): // it leads to a repository elsewhere
		return setAsideAll(filepath.Dir(dotGit), []string{dotGit}, nil)
	}
	return clearGitDir(dotGit, filepath.Dir(dotGit))
}

// clearGitDir does this in git's own folder, except for keep. It names what it set aside relative to from.
func clearGitDir(gitDir, from string, keep ...string) (note string, err error) {
	var found []string // set aside as a whole
	for _, name := range []string{"commondir", "config.worktree"} {
		if exists(filepath.Join(gitDir, name)) && !slices.Contains(keep, name) {
			found = append(found, filepath.Join(gitDir, name))
		}
	}
	if hooks := filepath.Join(gitDir, "hooks"); hasHooks(hooks) {
		found = append(found, hooks)
	}
	config := filepath.Join(gitDir, "config")
	var left []byte
	if exists(config) {
		kept, all := harmlessSettings(config, nil)
		if !all {
			found, left = append(found, config), []byte(kept)
		}
	}
	return setAsideAll(from, found, func() error {
		if left == nil {
			return nil
		}
		return os.WriteFile(config, left, 0o644)
	})
}

// setAsideAll sets the paths aside, calls then, and returns a note about it.
func setAsideAll(from string, paths []string, then func() error) (string, error) {
	if len(paths) == 0 {
		return "", nil
	}
	var names []string
	for _, path := range paths {
		aside, err := setAside(path)
		if err != nil {
			return "", err
		}
		name, _ := filepath.Rel(from, aside)
		names = append(names, name)
	}
	if then != nil {
		if err := then(); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("[sandbox: git outside the sandbox would have started what the command left in a repository; that was moved to %s. "+
		"Whoever owns this Chorus may look at it]", strings.Join(names, ", ")), nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// hasHooks reports whether a hooks folder contains any hooks but git's examples.
func hasHooks(hooks string) bool {
	info, err := os.Lstat(hooks)
	if err != nil {
		return false
	}
	if !info.IsDir() {
		return true // a link leads elsewhere
	}
	entries, err := os.ReadDir(hooks)
	if err != nil {
		return true
	}
	return slices.ContainsFunc(entries, func(entry os.DirEntry) bool { return !strings.HasSuffix(entry.Name(), ".sample") })
}

// tameTime is far more than git needs to read one file.
const tameTime = 5 * time.Second

// harmlessSettings returns the settings of a configuration that are harmless
// or were in before, and whether those are all of them.
func harmlessSettings(config string, before []byte) (kept string, all bool) {
	if info, err := os.Lstat(config); err != nil || !info.Mode().IsRegular() || info.Size() > gitsettings.MaxSize {
		return "", false
	}
	entries, err := listSettings(config)
	if err != nil { // git is missing or cannot read the file
		return "", false
	}
	known := map[string]bool{}
	if len(before) > 0 {
		file, err := os.CreateTemp("", "chorus-settings-")
		if err != nil {
			return "", false
		}
		defer func() { _ = os.Remove(file.Name()) }()
		_, err = file.Write(before)
		if err := errors.Join(err, file.Close()); err != nil {
			return "", false
		}
		old, _ := listSettings(file.Name())
		for _, entry := range old {
			known[entry] = true
		}
	}
	var text strings.Builder
	last := ""
	all = true
	for _, entry := range entries {
		key, value, valued := strings.Cut(entry, "\n")
		if !known[entry] && (!harmless().MatchString(key) || strings.ContainsAny(value, "\n\r")) {
			all = false
			continue
		}
		if !valued {
			value = "true"
		}
		head, row := written(key, value)
		if head != last {
			text.WriteString(head)
			last = head
		}
		text.WriteString(row)
	}
	return text.String(), all
}

// listSettings returns the settings in a file as git reads them, without files that
// it includes: key and value on a line each, or the key alone.
func listSettings(file string) ([]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), tameTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", "config", "--file", file, "--no-includes", "--null", "--list")
	cmd.Dir = "/"
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(strings.Split(string(out), "\x00"), func(entry string) bool { return entry == "" }), nil
}

// written returns a setting as it appears in a file: its section header and its row.
func written(key, value string) (head, row string) {
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
	section, rest, _ := strings.Cut(key, ".")
	name := rest
	if i := strings.LastIndexByte(rest, '.'); i >= 0 {
		section, name = section+` "`+quote.Replace(rest[:i])+`"`, rest[i+1:]
	}
	return "[" + section + "]\n", "\t" + name + ` = "` + quote.Replace(value) + "\"\n"
}
