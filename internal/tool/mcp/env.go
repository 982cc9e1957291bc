package mcp

import (
	"cmp"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"

	"chorus/internal/tool/mcp/serverconfig"
)

// passed are the variables that a program needs to find itself, its files and a language. Everything
// else is dropped: a server gets a secret only if its own configuration names it.
var passed = []string{
	"PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TERM", "TMPDIR", "TZ", "SHELL",
	"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "NODE_PATH", "NVM_DIR", "VIRTUAL_ENV", "JAVA_HOME",
	"SYSTEMROOT", "COMSPEC", "PATHEXT", "TEMP", "TMP", "USERPROFILE", "APPDATA", "LOCALAPPDATA",
}

// environ returns the environment of a server's process: the allowed part of ours, and its own.
func environ(ours []string, own map[string]string) []string {
	if ours == nil {
		ours = os.Environ()
	}
	var out []string
	for _, entry := range ours {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || !slices.Contains(passed, name) && !strings.HasPrefix(name, "LC_") {
			continue
		}
		if _, named := own[name]; named || hasPassword(value) {
			continue
		}
		out = append(out, entry)
	}
	for _, name := range slices.Sorted(maps.Keys(own)) {
		out = append(out, name+"="+own[name])
	}
	return out
}

// hasPassword reports whether a value is an address with a password.
func hasPassword(value string) bool {
	if !strings.Contains(value, "://") || !strings.Contains(value, "@") {
		return false
	}
	u, err := url.Parse(value)
	return err != nil || u.User != nil
}

// redactor returns a function that removes a server's secrets from a text.
func redactor(s Server) func(string) string {
	secrets := map[string]string{}
	add := func(secret, instead string) {
		if len(secret) >= 6 { // redacting shorter values would cut words apart and protect nothing
			secrets[secret] = instead
		}
	}
	if u, err := url.Parse(s.URL); err == nil && s.URL != "" {
		if u.RawQuery != "" || u.User != nil {
			add(s.URL, serverconfig.PlainURL(s.URL))
		}
		add(u.RawQuery, "***")
		for _, values := range u.Query() {
			for _, v := range values {
				add(v, "***")
			}
		}
		if pass, ok := u.User.Password(); ok {
			add(pass, "***")
		}
	}
	for _, v := range s.Headers {
		add(v, "***")
		if _, token, ok := strings.Cut(v, " "); ok {
			add(token, "***")
		}
	}
	for _, v := range s.Env {
		if !strings.HasPrefix(v, "/") { // a path says where to look and is no secret
			add(v, "***")
		}
	}
	// Longest first: a secret that is part of another must not leave the rest of the other visible.
	order := slices.SortedFunc(maps.Keys(secrets), func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	var pairs []string
	for _, secret := range order {
		pairs = append(pairs, secret, secrets[secret])
	}
	return strings.NewReplacer(pairs...).Replace
}
