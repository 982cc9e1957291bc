package bwrap

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"chorus/internal/sandbox/process"
)

// defaultPath is used when no directory of the server's PATH can be seen.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// environment returns the command's environment: the server's harmless and visible
// variables, then ours, then those of the executor and the command.
func (a *attempt) environment() []string {
	values := make(map[string]string, 64)
	order := make([]string, 0, 64)
	set := func(entries ...string) {
		for _, entry := range entries {
			name, value, ok := strings.Cut(entry, "=")
			if !ok || name == "" {
				continue
			}
			if _, seen := values[name]; !seen {
				order = append(order, name)
			}
			values[name] = value
		}
	}
	for _, entry := range a.e.env {
		name, value, _ := strings.Cut(entry, "=")
		if value, ok := a.seen(value); ok {
			set(name + "=" + value)
		}
	}
	if values["PATH"] == "" {
		set("PATH=" + defaultPath)
	}
	set("HOME="+homePath, "TMPDIR=/tmp", "USER=chorus", "LOGNAME=chorus", "PWD="+a.view.dir)
	if a.network.Proxy != "" {
		address := "http://" + Proxy
		for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
			set(name+"="+address, strings.ToLower(name)+"="+address)
		}
		set("NO_PROXY=localhost", "no_proxy=localhost")
	}
	set(a.e.opts.Env...)
	set(a.command.Env...)
	set(process.Marks(a.command, a.mark)...)
	env := make([]string, 0, len(order))
	for _, name := range order {
		env = append(env, name+"="+values[name])
	}
	return env
}

// seen removes paths that the command cannot see from a value and reports whether anything is
// left. A cache in a home that does not exist only makes programs fail.
func (a *attempt) seen(value string) (string, bool) {
	if !strings.HasPrefix(value, "/") {
		return value, true
	}
	var kept []string
	for _, path := range filepath.SplitList(value) {
		if a.view.covers(filepath.Clean(path)) {
			kept = append(kept, path)
		}
	}
	return strings.Join(kept, string(filepath.ListSeparator)), len(kept) > 0
}

// lookup finds the program of a name as the command would: in its PATH, among what it sees.
func (a *attempt) lookup(name string) (string, error) {
	if strings.Contains(name, "/") {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(a.view.dir, path)
		}
		if a.view.covers(filepath.Clean(path)) && executable(path) {
			return name, nil
		}
		return "", fmt.Errorf("start the command: %s is no program that the sandbox can see", name)
	}
	for _, entry := range a.env {
		list, ok := strings.CutPrefix(entry, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range filepath.SplitList(list) {
			path := filepath.Join(dir, name)
			if filepath.IsAbs(dir) && a.view.covers(filepath.Clean(dir)) && executable(path) {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("start the command: there is no program %q in the sandbox; a root can show more of this machine", name)
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}
