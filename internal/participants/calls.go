package participants

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/model/wire"
)

const (
	// longestName is the maximum length of a tool's name and of a tag; providers allow 64 bytes.
	longestName = 160
	// mostBroken is how many unfinished tags are tried before tags count as text,
	// since each is searched for up to the end of the answer.
	mostBroken = 64
)

// callLine reads Name>[tool]: {json}. The buffer begins with it, and its first name bytes are
// known. What only looks like a call is text. Arguments that are not JSON still make a call
// with what was written; the tool loop then tells the model.
func (a *answer) callLine(name int, final bool) (int, bool) {
	rest := a.buf[name:]
	end := bytes.IndexAny(rest[:min(len(rest), longestName)], "]\n")
	switch {
	case end < 0 && len(rest) < longestName && !final:
		return 0, false
	case end <= 0 || rest[end] != ']':
		return a.plain()
	case end+1 == len(rest) && !final:
		return 0, false
	case end+1 == len(rest) || rest[end+1] != ':':
		return a.plain()
	}
	tool := string(rest[:end])
	colon := name + end + 2
	body := bytes.TrimLeft(a.buf[colon:], space)
	from := len(a.buf) - len(body)
	switch {
	case len(body) == 0 && !final:
		return 0, false
	case len(body) > 0 && body[0] == '{':
		n, whole := a.scan.object(a.buf, from)
		if !whole {
			if !final {
				return 0, false
			}
			n = len(a.buf)
		}
		a.call(tool, object(a.buf[from:n]))
		a.at = afterCall
		return n, true
	case len(body) == 0 || bytes.IndexByte(a.buf[colon:from], '\n') >= 0:
		a.call(tool, json.RawMessage("{}"))
		a.at = afterCall
		return colon, true
	default:
		return a.plain()
	}
}

// plain takes the first byte as text after all.
func (a *answer) plain() (int, bool) {
	a.pushText(a.buf[:1])
	a.at = inLine
	return 1, true
}

// call adds a call.
func (a *answer) call(name string, args json.RawMessage) {
	a.held, a.newline = nil, false
	a.endText()
	a.calls++
	use := chat.ToolUse{ID: a.id + strconv.Itoa(a.calls), Name: name, Args: args}
	a.blocks = append(a.blocks, use)
	a.put(model.ArgsDelta{Call: use.ID, Text: string(args)})
}

// scanner finds the end of a JSON object in a growing buffer.
type scanner struct {
	pos             int
	depth           int
	inside, escaped bool
}

// object looks for the end of the object that begins at from. ok is false if it is not there yet.
func (s *scanner) object(b []byte, from int) (end int, ok bool) {
	s.pos = max(s.pos, from)
	for ; s.pos < len(b); s.pos++ {
		c := b[s.pos]
		switch {
		case s.escaped:
			s.escaped = false
		case s.inside:
			s.escaped = c == '\\'
			s.inside = c != '"'
		case c == '"':
			s.inside = true
		case c == '{' || c == '[':
			s.depth++
		case c == '}' || c == ']':
			if s.depth--; s.depth <= 0 {
				return s.pos + 1, true
			}
		}
	}
	return 0, false
}

// object returns what a model wrote as a JSON object. It escapes literal line breaks
// and tabs in strings, which JSON forbids but models often write.
func object(raw []byte) json.RawMessage {
	raw = bytes.Clone(bytes.TrimSpace(raw))
	if json.Valid(raw) {
		return raw
	}
	out := make([]byte, 0, len(raw)+16)
	inside, escaped := false, false
	for _, c := range raw {
		switch {
		case escaped:
			escaped = false
		case inside && c == '\\':
			escaped = true
		case c == '"':
			inside = !inside
		case inside && c < 0x20:
			text := wire.AppendString(nil, string(rune(c)))
			out = append(out, text[1:len(text)-1]...)
			continue
		}
		out = append(out, c)
	}
	if json.Valid(out) {
		return out
	}
	return raw
}

// tag reads what begins with < outside of code: <tool>{…}</tool> for a known
// tool, or a block of function calls. Anything else is text.
func (a *answer) tag(final bool) (int, bool) {
	end := 1
	for end < len(a.buf) && end < longestName && tagByte(a.buf[end]) {
		end++
	}
	if end == len(a.buf) && !final {
		return 0, false
	}
	if end == len(a.buf) || a.buf[end] != '>' {
		return a.plain()
	}
	name := string(a.buf[1:end])
	_, known := a.tools[name]
	ns, block := strings.CutSuffix(name, "function_calls")
	block = block && (ns == "" || strings.HasSuffix(ns, ":"))
	if !known && !block || a.broken >= mostBroken {
		return a.plain()
	}
	calls := a.calls
	n, ok := 0, false
	if known {
		n, ok = a.legacy(name, end+1, final)
	} else {
		n, ok = a.functionCalls(ns, end+1, final)
	}
	if ok && a.calls == calls {
		a.broken++
	}
	return n, ok
}

func tagByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_-.:", c) >= 0
}

// legacy reads <tool>{json}</tool>. With invalid JSON, or unclosed, it is text.
func (a *answer) legacy(name string, open int, final bool) (int, bool) {
	body := bytes.TrimLeft(a.buf[open:], space)
	from := len(a.buf) - len(body)
	if len(body) == 0 && !final {
		return 0, false
	}
	args := json.RawMessage("{}")
	if len(body) > 0 && body[0] == '{' {
		n, whole := a.scan.object(a.buf, from)
		if !whole && !final {
			return 0, false
		}
		if !whole {
			return a.plain()
		}
		if args = object(a.buf[from:n]); !json.Valid(args) {
			return a.plain()
		}
		body = bytes.TrimLeft(a.buf[n:], space)
		if len(body) == 0 && !final {
			return 0, false
		}
		from = len(a.buf) - len(body)
	}
	closing := "</" + name + ">"
	if len(body) > 1 && body[0] == '<' && body[1] != '/' {
		named, n, state := a.children(name, body)
		switch {
		case state == unfinished && !final:
			return 0, false
		case state != whole:
			return a.plain()
		}
		args, from = named, from+n
		body = a.buf[from:]
	}
	yes, wait := begun(body, closing, final)
	if wait {
		return 0, false
	}
	if !yes {
		return a.plain()
	}
	a.call(name, args)
	a.at = afterTag
	return from + len(closing), true
}

// reach says how much of a call in tags is there.
type reach uint8

const (
	whole      reach = iota
	unfinished       // more may come
	noCall           // it is not a call, whatever follows
)

// children reads <path>…</path><content>…</content> up to the tool's closing tag, and returns the
// arguments and their length. A value ends at its own closing tag, whatever it contains before
// that.
func (a *answer) children(tool string, body []byte) (json.RawMessage, int, reach) {
	types := readSchema(a.tools[tool]).Properties
	args := map[string]json.RawMessage{}
	rest := string(body)
	for {
		rest = strings.TrimLeft(rest, space)
		closing := "</" + tool + ">"
		switch {
		case strings.HasPrefix(rest, closing):
			return arguments(args), len(body) - len(rest), whole
		case strings.HasPrefix(closing, rest):
			return nil, 0, unfinished
		case rest[0] != '<':
			return nil, 0, noCall
		}
		end := 1
		for end < len(rest) && end < longestName && tagByte(rest[end]) {
			end++
		}
		if end == len(rest) {
			return nil, 0, unfinished
		}
		key := rest[1:end]
		if _, known := types[key]; !known || rest[end] != '>' {
			return nil, 0, noCall
		}
		value, after, ok := strings.Cut(rest[end+1:], "</"+key+">")
		if !ok {
			return nil, 0, unfinished
		}
		args[key] = valueOf(value, types[key].Type == "string")
		rest = after
	}
}

// functionCalls reads a block of invocations. A block followed by results was answered already and is text.
func (a *answer) functionCalls(ns string, open int, final bool) (int, bool) {
	closing := "</" + ns + "function_calls>"
	body, end := a.buf[open:], len(a.buf)
	i := bytes.Index(body, []byte(closing))
	switch {
	case i >= 0:
		body, end = body[:i], open+i+len(closing)
		rest := bytes.TrimLeft(a.buf[end:], space)
		if len(rest) == 0 && !final {
			return 0, false
		}
		answered, wait := begun(rest, "<"+ns+"function_results>", final)
		if wait {
			return 0, false
		}
		if answered {
			a.pushText(a.buf[:end])
			return end, true
		}
	case !final:
		return 0, false
	}
	uses := a.invocations(ns, string(body))
	if len(uses) == 0 {
		return a.plain()
	}
	for _, use := range uses {
		a.call(use.Name, use.Args)
	}
	a.at = afterTag
	return end, true
}

// invocations reads <invoke name="…"> with its <parameter name="…">
// values. A value ends only at its closing tag.
func (a *answer) invocations(ns, body string) []chat.ToolUse {
	var uses []chat.ToolUse
	for {
		name, rest, ok := element(body, ns+"invoke")
		if !ok {
			return uses
		}
		types := readSchema(a.tools[name]).Properties
		args := map[string]json.RawMessage{}
		for {
			body = strings.TrimLeft(rest, space)
			if !strings.HasPrefix(body, "<"+ns+"parameter ") {
				break
			}
			key, value, ok := element(body, ns+"parameter")
			if !ok {
				return uses
			}
			value, after, ok := strings.Cut(value, "</"+ns+"parameter>")
			if !ok {
				return uses
			}
			args[key] = valueOf(value, types[key].Type == "string")
			rest = after
		}
		if !strings.HasPrefix(body, "</"+ns+"invoke>") {
			return uses // cut off, or not really an invocation
		}
		uses = append(uses, chat.ToolUse{Name: name, Args: arguments(args)})
	}
}

// arguments writes an object, sorted by key and without escaping < and >.
func arguments(args map[string]json.RawMessage) json.RawMessage {
	out := []byte{'{'}
	for _, key := range slices.Sorted(maps.Keys(args)) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(wire.AppendString(out, key), ':'), args[key]...)
	}
	return append(out, '}')
}

// element finds the next <tag name="…"> and returns its name and what follows it.
func element(s, tag string) (name, rest string, ok bool) {
	_, s, ok = strings.Cut(s, "<"+tag+" name=")
	if !ok || s == "" || s[0] != '"' && s[0] != '\'' {
		return "", "", false
	}
	name, rest, ok = strings.Cut(s[1:], s[:1])
	if !ok {
		return "", "", false
	}
	rest, ok = strings.CutPrefix(strings.TrimLeft(rest, " \t"), ">")
	return name, rest, ok && name != ""
}

// valueOf returns a parameter's value: as JSON if it is valid JSON and
// the tool does not want a string, or else as text.
func valueOf(text string, isString bool) json.RawMessage {
	trimmed := strings.TrimSpace(text)
	if !isString && json.Valid([]byte(trimmed)) {
		return json.RawMessage(trimmed)
	}
	return wire.AppendString(nil, text)
}
