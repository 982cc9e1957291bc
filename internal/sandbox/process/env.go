package process

import (
	"net/url"
	"slices"
	"strings"
)

// passed are the variables that a command needs to find programs, files and a language.
// Everything else is dropped, so no secret gets out by oversight.
var passed = []string{
	"PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "SHELL", "TMPDIR", "TZ",
	"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "LD_LIBRARY_PATH", "PKG_CONFIG_PATH", "CC", "CXX",
	"GOPATH", "GOROOT", "GOBIN", "GOCACHE", "GOMODCACHE", "GOFLAGS", "GOPROXY", "GONOPROXY",
	"GOSUMDB", "GONOSUMDB", "GOPRIVATE", "GOTOOLCHAIN", "GOTMPDIR", "CGO_ENABLED",
	"CARGO_HOME", "RUSTUP_HOME", "JAVA_HOME", "ANDROID_HOME", "DOTNET_ROOT",
	"NVM_DIR", "NODE_PATH", "VIRTUAL_ENV", "PYENV_ROOT", "CONDA_PREFIX", "GEM_HOME", "GEM_PATH", "BUN_INSTALL", "DENO_DIR",
	"SYSTEMROOT", "COMSPEC", "PATHEXT", "TEMP", "TMP", "USERPROFILE",
}

// fixed tells programs that there is no terminal and nobody to ask.
var fixed = []string{
	"TERM=dumb", "PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0", "PYTHONUNBUFFERED=1",
}

// Environ returns the part of the server's environment that a child may have. A value that is
// an address with a password is dropped even if its name is allowed.
func Environ(environ []string) []string {
	out := make([]string, 0, 32)
	for _, entry := range environ {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || !slices.Contains(passed, name) && !strings.HasPrefix(name, "LC_") {
			continue
		}
		if strings.Contains(value, "://") && strings.Contains(value, "@") && hasPassword(value) {
			continue
		}
		out = append(out, entry)
	}
	return append(out, fixed...)
}

func hasPassword(value string) bool {
	for _, part := range strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == '|' || r == ' ' }) {
		if u, err := url.Parse(part); err != nil || u.User != nil {
			return true
		}
	}
	return false
}
