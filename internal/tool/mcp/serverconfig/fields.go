package serverconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"chorus/internal/text"
)

// fieldReader reads one server's fields in the spellings that are in use. It keeps the first error.
type fieldReader struct {
	fields map[string]json.RawMessage
	lookup func(string) (string, bool)
	err    error
}

func (r *fieldReader) server(name string) Server {
	s := Server{Name: name}
	r.command(&s)
	s.Env = r.table("env", "environment")
	s.Dir = r.text("cwd", "dir", "workingDirectory")
	s.URL = r.text("url", "serverUrl", "httpUrl")
	s.Headers = r.table("headers", "http_headers")
	s.Type = r.kind()
	s.StartTimeout = r.duration("timeout", "start_timeout", "startTimeout", "startup_timeout_sec", "startupTimeout")
	s.CallTimeout = r.duration("tool_timeout", "toolTimeout", "call_timeout", "callTimeout", "tool_timeout_sec")
	s.TaskTimeout = r.duration("task_timeout", "taskTimeout")
	s.Disabled = r.flag(false, "disabled") || !r.flag(true, "enabled")
	s.Hosts = r.texts("hosts")
	if s.Sandbox = r.text("sandbox"); s.Sandbox == "auto" || s.Sandbox == "on" {
		s.Sandbox = ""
	}
	s.DisabledTools = r.texts("disabled_tools", "disabledTools", "exclude_tools", "excludeTools")
	return s
}

// command reads a program and its arguments, or both as one list.
func (r *fieldReader) command(s *Server) {
	if raw, _ := r.get("command"); len(raw) > 0 && raw[0] == '[' {
		if words := r.texts("command"); len(words) > 0 {
			s.Command, s.Args = words[0], words[1:]
		}
	} else {
		s.Command = r.text("command")
	}
	s.Args = append(s.Args, r.texts("args")...)
}

func (r *fieldReader) kind() string {
	switch kind := r.text("type", "transport"); strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(kind)) {
	case "", "remote", "local":
		return ""
	case "stdio":
		return Stdio
	case "http", "streamablehttp", "streamable":
		return HTTP
	case "sse":
		return SSE
	default:
		r.fail("type %q is not known: use stdio, http or sse", text.Printable(kind, 30))
		return ""
	}
}

func (r *fieldReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// get returns the first of the keys that exists.
func (r *fieldReader) get(keys ...string) (json.RawMessage, string) {
	for _, key := range keys {
		if raw, ok := r.fields[key]; ok && string(raw) != "null" {
			return raw, key
		}
	}
	return nil, keys[0]
}

func (r *fieldReader) text(keys ...string) string {
	raw, key := r.get(keys...)
	if raw == nil {
		return ""
	}
	text, ok := scalar(raw)
	if !ok {
		r.fail("%q must be a string", key)
	}
	return r.expand(text)
}

func (r *fieldReader) texts(keys ...string) []string {
	raw, key := r.get(keys...)
	if raw == nil {
		return nil
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		r.fail("%q must be a list of strings", key)
		return nil
	}
	var out []string
	for _, one := range list {
		text, ok := scalar(one)
		if !ok {
			r.fail("%q must be a list of strings", key)
			return nil
		}
		out = append(out, r.expand(text))
	}
	return out
}

func (r *fieldReader) table(keys ...string) map[string]string {
	raw, key := r.get(keys...)
	if raw == nil {
		return nil
	}
	var table map[string]json.RawMessage
	if json.Unmarshal(raw, &table) != nil {
		r.fail("%q must be an object of strings", key)
		return nil
	}
	out := make(map[string]string, len(table))
	for name, one := range table {
		value, ok := scalar(one)
		if !ok {
			r.fail("%s in %q must be a string", text.Printable(name, 40), key)
			return nil
		}
		out[name] = r.expand(value)
	}
	return out
}

func (r *fieldReader) flag(otherwise bool, key string) bool {
	raw, _ := r.get(key)
	if raw == nil {
		return otherwise
	}
	var flag bool
	if json.Unmarshal(raw, &flag) != nil {
		r.fail("%q must be true or false", key)
	}
	return flag
}

// duration reads "30s" or a number. Numbers are seconds, or from 1000 on
// milliseconds, which some programs write here.
func (r *fieldReader) duration(keys ...string) time.Duration {
	raw, key := r.get(keys...)
	if raw == nil {
		return 0
	}
	var number float64
	var text string
	var d time.Duration
	err := errors.New("no duration")
	switch {
	case json.Unmarshal(raw, &number) == nil:
		unit := time.Second
		if number >= 1000 {
			unit = time.Millisecond
		}
		if number > 0 && number < 1e9 {
			d, err = time.Duration(number*float64(unit)), nil
		}
	case json.Unmarshal(raw, &text) == nil:
		d, err = time.ParseDuration(text)
	}
	if err != nil || d <= 0 || d > 24*time.Hour {
		r.fail("%q must be a number of seconds, or text such as \"30s\"", key)
		return 0
	}
	return d
}

// scalar returns a string, or a number or boolean as a string.
func scalar(raw json.RawMessage) (string, bool) {
	var text string
	if json.Unmarshal(raw, &text) == nil && string(raw) != "null" {
		return text, true
	}
	switch c := raw[0]; {
	case c == '-', c >= '0' && c <= '9', c == 't', c == 'f':
		return string(raw), true
	}
	return "", false
}

// expand replaces ${NAME} and ${NAME:-default}.
func (r *fieldReader) expand(given string) string {
	var out strings.Builder
	for {
		before, rest, ok := strings.Cut(given, "${")
		inside, after, closed := strings.Cut(rest, "}")
		if !ok || !closed {
			out.WriteString(given)
			return out.String()
		}
		out.WriteString(before)
		name, otherwise, hasDefault := strings.Cut(inside, ":-")
		name = strings.TrimPrefix(name, "env:")
		value, set := r.lookup(name)
		switch {
		case value == "" && hasDefault:
			value = otherwise
		case !set:
			r.fail("the environment variable %s is not set, and ${%s} names no default: set it, or write ${%s:-…}",
				text.Printable(name, 60), text.Printable(name, 60), text.Printable(name, 60))
		}
		out.WriteString(value)
		given = after
	}
}
