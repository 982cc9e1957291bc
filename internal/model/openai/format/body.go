package format

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"chorus/internal/model/wire"
	"chorus/internal/pattern"
)

// Extra are custom fields that are merged into the top level of every body. A field that we also write is
// replaced, and null removes it. This supports servers that require max_tokens or do not know stream_options.
type Extra map[string]json.RawMessage

// ours are the fields that no extra field may change: what is asked,
// of which model, and that the answer streams.
var ours = []string{"model", "messages", "input", "instructions", "prompt", "stream", "tools"}

// Check returns what is wrong with the extra fields.
func (e Extra) Check() error {
	for _, key := range slices.Sorted(maps.Keys(e)) {
		if slices.Contains(ours, key) {
			return fmt.Errorf("the extra field %q is not free: take it out of the vendor's extra fields", key)
		}
		if !json.Valid(e[key]) {
			return fmt.Errorf("the extra field %q is not JSON", key)
		}
	}
	return nil
}

// Append writes the extra fields by name, each preceded by a comma.
func (e Extra) Append(body []byte) []byte {
	for _, key := range slices.Sorted(maps.Keys(e)) {
		if string(e[key]) == "null" {
			continue
		}
		body = wire.AppendString(append(body, ','), key)
		body = append(append(body, ':'), e[key]...)
	}
	return body
}

// Body is the beginning of a request that is being written. The fields appear in the
// order in which they are set, except those that extra fields replace.
type Body struct {
	Bytes []byte
	Extra Extra
}

// key begins a field, preceded by a comma. It returns false if an extra field replaces it.
func (b *Body) key(name string) bool {
	if _, taken := b.Extra[name]; taken {
		return false
	}
	b.Bytes = append(append(append(b.Bytes, `,"`...), name...), `":`...)
	return true
}

// Raw sets a field to JSON.
func (b *Body) Raw(name, value string) {
	if b.key(name) {
		b.Bytes = append(b.Bytes, value...)
	}
}

// Int sets a number.
func (b *Body) Int(name string, n int) {
	if b.key(name) {
		b.Bytes = strconv.AppendInt(b.Bytes, int64(n), 10)
	}
}

// Float sets a number if there is one.
func (b *Body) Float(name string, f *float64, least, most float64) {
	if f != nil && b.key(name) {
		b.Bytes = wire.AppendFloat(b.Bytes, min(max(*f, least), most))
	}
}

// Stops sets the first stop sequences that are not empty, at most most of them.
func (b *Body) Stops(name string, list []string, most int) {
	stops := slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == "" })
	stops = stops[:min(len(stops), most)]
	if len(stops) > 0 && b.key(name) {
		b.Bytes = wire.AppendStrings(b.Bytes, stops)
	}
}

// version matches a part of a path that names a version of an API.
var version = pattern.Lazy(`^v[0-9]+[a-z0-9]*$`)

// endings are the endings of addresses that name one call.
var endings = []string{"/chat/completions", "/completions", "/responses", "/models"}

// Base returns the address below which the calls are found, with a trailing slash, and the query
// that goes with each call. An address that names one call is cut before it, one with a version
// anywhere in its path is used as it is, and any other gets /v1.
func Base(address string) (base string, query url.Values) {
	address = strings.TrimSpace(address)
	address, _, _ = strings.Cut(address, "#")
	if before, after, ok := strings.Cut(address, "?"); ok {
		address = before
		query, _ = url.ParseQuery(after) // unreadable parts are dropped; the server will report what is missing
	}
	address = strings.TrimRight(address, "/")
	if address == "" {
		return "", nil
	}
	for _, end := range endings {
		if cut, ok := strings.CutSuffix(address, end); ok {
			return strings.TrimRight(cut, "/") + "/", query
		}
	}
	path := address
	if _, after, ok := strings.Cut(address, "://"); ok {
		path = after
	}
	_, path, _ = strings.Cut(path, "/") // a host is not a version
	if !slices.ContainsFunc(strings.Split(path, "/"), version().MatchString) {
		address += "/v1"
	}
	return address + "/", query
}

// modelNames reads a list of models, by name.
func modelNames(data []byte) ([]string, error) {
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("read the list of models: %w", err)
	}
	var names []string
	for _, m := range list.Data {
		names = append(names, m.ID)
	}
	slices.Sort(names)
	return names, nil
}

// Secrets returns the header values that are long enough to be keys. No error repeats them.
func Secrets(headers map[string]string) []string {
	var out []string
	for _, v := range headers {
		if len(v) >= 8 {
			out = append(out, v)
		}
	}
	slices.Sort(out)
	return out
}
