package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"chorus/internal/pattern"
)

// unsetError is a ${VARIABLE} that has no value.
type unsetError string

func (e unsetError) Error() string {
	return fmt.Sprintf("the environment variable %s is not set (write $${%s} for the text itself)", string(e), string(e))
}

// expand replaces ${NAME} by the variable's value; $${ is a literal ${.
func expand(text string, env func(string) string) (string, error) {
	var b strings.Builder
	var errs []error
	for {
		i := strings.Index(text, "${")
		if i < 0 {
			b.WriteString(text)
			return b.String(), errors.Join(errs...)
		}
		if i > 0 && text[i-1] == '$' {
			b.WriteString(text[:i-1] + "${")
			text = text[i+2:]
			continue
		}
		b.WriteString(text[:i])
		name, rest, closed := strings.Cut(text[i+2:], "}")
		switch {
		case !closed:
			errs = append(errs, errors.New("a ${ without its } (write $${ for the text itself)"))
			name, rest = "", ""
		case !variable().MatchString(name):
			errs = append(errs, fmt.Errorf("${%s} does not name an environment variable (write $${ for the text itself)", name))
		default:
			value := env(name)
			if value == "" {
				errs = append(errs, unsetError(name))
			}
			b.WriteString(value)
		}
		text = rest
	}
}

var variable = pattern.Lazy(`^[A-Za-z_][A-Za-z0-9_]*$`)

// largestSecret leaves room for many keys and a certificate.
const largestSecret = 64 << 10

// secretFile reads a file: reference. A relative path is relative to the folder of the file that contains it.
func secretFile(path, dir string, env func(string) string) (string, error) {
	path = strings.TrimSpace(path)
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		path = filepath.Join(env("HOME"), rest)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read the secret: %w", err)
	}
	defer f.Close()
	text, err := readLimited(f, largestSecret)
	if err != nil {
		return "", fmt.Errorf("read the secret %s: %w", path, err)
	}
	if text = strings.TrimSpace(text); text == "" {
		return "", fmt.Errorf("the file %s is empty", path)
	}
	return text, nil
}

func readLimited(f *os.File, limit int64) (string, error) {
	if info, err := f.Stat(); err != nil {
		return "", err
	} else if !info.Mode().IsRegular() && info.Mode()&os.ModeNamedPipe != 0 || info.IsDir() {
		return "", errors.New("not a file")
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return "", err
	}
	if int64(len(data)) > limit {
		return "", fmt.Errorf("larger than %d bytes", limit)
	}
	return string(data), nil
}

// textFile reads the file that systemPromptFile or contextPrefixFile names. It must be below the
// folder of the file that names it, even after symbolic links are resolved.
func textFile(path, dir string) (string, error) {
	if filepath.IsAbs(path) || !filepath.IsLocal(path) {
		return "", fmt.Errorf("%q must stand below %s", path, dir)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	f, err := root.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := readLimited(f, largestFile)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	return strings.TrimPrefix(text, "\ufeff"), nil
}

// hidden reports whether a value must not be shown: the key is for secrets, and this
// value is one. A vendor's addresses and regions may be shown.
func hidden(k *Key, path, value string) bool {
	if k == nil || !k.Secret || value == "" {
		return false
	}
	name := path[strings.LastIndexByte(path, '.')+1:]
	switch {
	case strings.Contains(k.Path, "config.*") || strings.Contains(k.Path, "env.*") || strings.Contains(k.Path, "headers.*"):
		return sensitive().MatchString(name) && !strings.HasSuffix(strings.ToLower(name), "_file") || password(value)
	case strings.HasSuffix(k.Path, "Url"):
		return password(value)
	default:
		return true
	}
}

// sensitive matches the names of variables, headers and config keys that hold secrets.
var sensitive = pattern.Lazy(`(?i)key|secret|token|passw|auth|cookie|credential`)

// password reports whether an address contains a password.
func password(value string) bool { return inAddress().MatchString(value) }

var inAddress = pattern.Lazy(`://[^/@\s]*:[^/@\s]+@`)

// Secret is a value that is not printed; string(s) returns it.
type Secret string

// String hides the value.
func (s Secret) String() string { return masked(string(s)) }

// GoString hides the value.
func (s Secret) GoString() string { return masked(string(s)) }

// MarshalText hides the value.
func (s Secret) MarshalText() ([]byte, error) { return []byte(masked(string(s))), nil }

func masked(value string) string {
	if value == "" {
		return ""
	}
	return "••••"
}

// Values are named values, some of which are secrets. When printed, all are hidden.
type Values map[string]string

// String hides the values.
func (v Values) String() string { return fmt.Sprintf("%d values", len(v)) }

// GoString hides the values.
func (v Values) GoString() string { return v.String() }

// MarshalJSON hides the values.
func (v Values) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, "%q", v.String()), nil }
