package approval

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Facts are what an approval is given for. If one of them is different when
// the call is about to run, somebody is asked again.
type Facts struct {
	Tool    string            `json:"tool"`
	Args    json.RawMessage   `json:"args"`
	Dir     string            `json:"dir"`
	Env     []string          `json:"env,omitempty"`     // names of variables that a command would get, sorted
	Changes string            `json:"changes,omitempty"` // a digest of what it would change
	Files   map[string]string `json:"files,omitempty"`   // digests of files that it names, or Missing
	Unbound []string          `json:"unbound,omitempty"` // what it names that an approval cannot pin down, and why

	// How its actions were judged, so that they can be judged again. Changes are not compared.
	Declared bool     `json:"declared,omitempty"` // its tool names what it accesses; otherwise its arguments are its action
	Git      []string `json:"git,omitempty"`      // the actions whose path lies in a git directory
	Each     string   `json:"each,omitempty"`     // why it needs approval each time, whatever the rules allow; "" if they decide
}

// FactsOf reads stored facts. What cannot be read has none.
func FactsOf(stored json.RawMessage) Facts {
	var f Facts
	if json.Unmarshal(stored, &f) != nil {
		return Facts{}
	}
	return f
}

// compared returns the facts without those that are only told.
func (f Facts) compared() Facts {
	f.Unbound, f.Declared, f.Git, f.Each = nil, false, nil, ""
	return f
}

// Missing takes the place of the digest of a missing file.
const Missing = "missing"

// Encode returns the stored form.
func (f Facts) Encode() json.RawMessage {
	data, err := json.Marshal(f)
	if err != nil { // arguments that are not JSON are compared byte by byte
		args, _ := json.Marshal(string(f.Args))
		f.Args = args
		data, _ = json.Marshal(f)
	}
	return data
}

// Unbound returns the part of a call that an approval cannot pin down, according to its bound facts, or "".
func Unbound(stored json.RawMessage) string {
	return strings.Join(FactsOf(stored).Unbound, "; ")
}

// Since says for people what has changed since earlier facts, or returns "".
func (f Facts) Since(stored json.RawMessage) string {
	now := f.compared().Encode() // what is unbound appears in the files
	if bytes.Equal(stored, now) {
		return ""
	}
	var was Facts
	if err := json.Unmarshal(stored, &was); err != nil {
		return "what was approved cannot be read any more"
	}
	was = was.compared()
	if bytes.Equal(was.Encode(), now) {
		return ""
	}
	var is Facts
	if err := json.Unmarshal(now, &is); err != nil {
		return "the call cannot be compared with what was approved"
	}
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if was.Tool != is.Tool || !bytes.Equal(was.Args, is.Args) {
		say("the call is not the one that was approved")
	}
	if was.Dir != is.Dir {
		say("it was to run in %s", was.Dir)
	}
	out = append(out, filesSince(was.Files, is.Files)...)
	if was.Changes != is.Changes {
		say("what it would change is no longer what was approved")
	}
	if more := without(is.Env, was.Env); len(more) > 0 {
		say("it would get more variables: %s", strings.Join(more, ", "))
	}
	if fewer := without(was.Env, is.Env); len(fewer) > 0 {
		say("it would no longer get the variables %s", strings.Join(fewer, ", "))
	}
	if len(out) == 0 {
		say("what was approved is stored in another form")
	}
	return strings.Join(out, "; ")
}

// maxTold is how many files a sentence names.
const maxTold = 5

func filesSince(was, is map[string]string) []string {
	var out []string
	both := maps.Clone(is)
	if both == nil {
		both = map[string]string{}
	}
	maps.Copy(both, was)
	for _, name := range slices.Sorted(maps.Keys(both)) {
		before, now := was[name], is[name]
		absent := func(digest string) bool { return digest == "" || digest == Missing }
		switch {
		case before == now || absent(before) && absent(now):
			continue
		case absent(before):
			out = append(out, name+" has appeared")
		case absent(now):
			out = append(out, name+" is gone")
		default:
			out = append(out, name+" has changed")
		}
	}
	if len(out) > maxTold {
		out = append(out[:maxTold], fmt.Sprintf("and %d more files", len(out)-maxTold))
	}
	return out
}

// without returns the elements of a that are not in b.
func without(a, b []string) []string {
	var out []string
	for _, s := range a {
		if !slices.Contains(b, s) {
			out = append(out, s)
		}
	}
	return out
}
