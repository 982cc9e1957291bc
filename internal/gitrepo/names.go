package gitrepo

import (
	"cmp"
	"net/url"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"chorus/internal/pattern"
	"chorus/internal/text"
)

// maxSlug is how many bytes of a title a branch name contains: enough to recognise it in a list of branches.
const maxSlug = 50

// BranchName returns the branch of a task: its id, a slash, and its title in
// lower case with dashes. Git always accepts the name.
func BranchName(id, title string) string {
	short := slug(title)
	if len(short) > maxSlug {
		cut := text.Prefix(short, maxSlug)
		if end := strings.LastIndexByte(cut, '-'); end > 0 && short[len(cut)] != '-' {
			cut = cut[:end]
		}
		short = strings.TrimRight(cut, "-")
	}
	return cmp.Or(slug(id), "task") + "/" + cmp.Or(short, "task")
}

// slug keeps letters and digits; everything between them becomes one dash.
func slug(s string) string {
	var b strings.Builder
	gap := false
	for _, r := range strings.ToLower(s) {
		switch {
		case r == utf8.RuneError:
			gap = true
		case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) && b.Len() > 0 && !gap:
			if gap && b.Len() > 0 {
				b.WriteByte('-')
			}
			gap = false
			b.WriteRune(r)
		case r == '\'' || r == '’': // "don't" is one word
		default:
			gap = true
		}
	}
	return b.String()
}

// CheckBranch reports whether a name can be a branch: it must satisfy git's
// check-ref-format, and must not begin with a dash, which commands would take
// for an option, or have another meaning for git.
func CheckBranch(name string) error {
	why := ""
	switch {
	case name == "":
		why = "it is empty"
	case len(name) > 200:
		why = "it is longer than 200 bytes"
	case !utf8.ValidString(name):
		why = "it is not valid UTF-8"
	case strings.HasPrefix(name, "-"):
		why = "it begins with a dash"
	case name == "@" || name == "HEAD":
		why = "git uses this name itself"
	case strings.HasPrefix(name, "refs/"):
		why = "give the branch without refs/heads/"
	case strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(`~^:?*[\`, r) }):
		why = `it has a space, a control character or one of ~ ^ : ? * [ \`
	case strings.Contains(name, "..") || strings.Contains(name, "@{") || strings.Contains(name, "//"):
		why = "it has .., @{ or //"
	case strings.HasPrefix(name, "/") || strings.HasSuffix(name, "/") || strings.HasSuffix(name, "."):
		why = "it begins or ends with a slash or ends with a dot"
	}
	for part := range strings.SplitSeq(name, "/") {
		if why == "" && (strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock") || len(part) > 120) {
			why = "a part of it begins with a dot, ends with .lock or is longer than 120 bytes"
		}
	}
	if why != "" {
		return fail(ErrBadName, "%q cannot be the name of a branch: %s", text.Clip(name, 80), why)
	}
	return nil
}

var (
	oidForm    = pattern.Lazy(`^(?:[0-9a-f]{40}|[0-9a-f]{64})$`)
	folderForm = pattern.Lazy(`^[A-Za-z0-9][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*$`)
	hostForm   = pattern.Lazy(`^(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*)|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?$`)
	userForm   = pattern.Lazy(`^[A-Za-z0-9_][A-Za-z0-9._+-]*$`)
	scpForm    = pattern.Lazy(`^(?:([^@/:]+)@)?([^/:@]+):([^:].*)$`)
)

// CheckURL reports whether a repository may be cloned from a url: https, ssh, git, the
// form user@host:path, and, if local allows it, an absolute path or file://. Forms with
// which git would start a program (ext::) are refused.
func CheckURL(raw string, local bool) error {
	_, err := parseURL(raw, local)
	return err
}

// place is the location of a repository, without the protocol.
type place struct{ host, path string }

func parseURL(raw string, local bool) (place, error) {
	bad := func(why string) (place, error) {
		return place{}, fail(ErrBadURL, "%q cannot be cloned: %s", redacted(raw), why)
	}
	const forms = "use https://host/owner/name, ssh://git@host/owner/name or git@host:owner/name"
	switch {
	case raw == "":
		return bad("the url is empty; " + forms)
	case strings.HasPrefix(raw, "-"):
		return bad("it begins with a dash; " + forms)
	case !utf8.ValidString(raw) || strings.ContainsFunc(raw, unicode.IsControl):
		return bad("it has control characters; " + forms)
	case filepath.IsAbs(raw):
		if !local {
			return bad("paths of this machine may be given only by its owner; " + forms)
		}
		return place{path: cleanPath(raw)}, nil
	}
	if scheme, _, ok := strings.Cut(raw, "://"); ok && !strings.Contains(scheme, ":") {
		return parseSchemed(raw, scheme, local, bad)
	}
	m := scpForm().FindStringSubmatch(raw)
	switch {
	case strings.Contains(raw, "::"):
		return bad("such urls start a program; " + forms)
	case m == nil:
		return bad("it is neither a url nor an absolute path; " + forms)
	case m[1] != "" && !userForm().MatchString(m[1]) || !hostForm().MatchString(m[2]) || strings.HasPrefix(m[3], "-"):
		return bad("its user, host or path is not in order; " + forms)
	}
	return place{strings.ToLower(m[2]), trimRepo(m[3])}, nil
}

func parseSchemed(raw, scheme string, local bool, bad func(string) (place, error)) (place, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return bad("it is not a valid url")
	}
	switch scheme {
	case "https", "ssh", "git":
	case "file":
		if !local {
			return bad("files of this machine may be given only by its owner")
		}
		if u.Host != "" || !filepath.IsAbs(u.Path) {
			return bad("file:// needs an absolute path")
		}
		return place{path: cleanPath(u.Path)}, nil
	case "http":
		return bad("http is not encrypted; use https")
	default:
		return bad("only https, ssh, git and file are allowed")
	}
	_, secret := u.User.Password()
	switch {
	case secret:
		return bad("it has a password in it, which would be stored and shown; use a credential helper (`gh auth setup-git`) or ssh")
	case u.User != nil && !userForm().MatchString(u.User.Username()), !hostForm().MatchString(u.Host):
		return bad("its user or host is not in order")
	case u.RawQuery != "" || u.Fragment != "" || trimRepo(u.Path) == "":
		return bad("it needs a path, and neither ? nor #")
	}
	return place{strings.ToLower(u.Host), trimRepo(u.Path)}, nil
}

// redacted returns a url without its password, for display.
func redacted(raw string) string {
	if u, err := url.Parse(raw); err == nil && u.User != nil {
		raw = u.Redacted()
	}
	return text.Clip(text.OneLine(raw), 200)
}

func trimRepo(path string) string {
	return strings.TrimSuffix(strings.Trim(path, "/"), ".git")
}

// cleanPath returns a path with its links resolved as far as it exists.
func cleanPath(path string) string {
	path = filepath.Clean(path)
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return strings.TrimSuffix(path, ".git")
}

// SameRemote reports whether two urls name the same repository, whatever the
// protocol: git@host:a/b.git and https://host/a/b do.
func SameRemote(a, b string) bool {
	at, err := parseURL(a, true)
	if err != nil {
		return a == b
	}
	other, err := parseURL(b, true)
	return err == nil && at == other
}
