package approved

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"chorus/internal/digest"
	"chorus/internal/trust"
)

// MCP servers are in the same lock: models read what they say about their tools as they read instructions. A
// person named the server, in the configuration or by trusting a repository, so what it says first is stored
// as approved. If it later says something else, that is off until somebody has reviewed it.

const (
	serverPrefix = "mcp:"
	toolPrefix   = "tool "
	filePrefix   = "file "
	// firstUse is who approves a server's tools that were never seen before.
	firstUse = "first use"
	// maxPinned limits what is remembered about one server.
	maxPinned = 5000
)

// Described is an MCP server in its present state.
type Described struct {
	Server string            // its name
	Config string            // the command or the address, in one text
	Tools  map[string]string // what the model would read about each, by name
	Files  map[string]string // digests of the files that it starts, by absolute path
}

// ID returns the id under which the server is found once it was seen.
func (d Described) ID() string { return ShortID(d.key()) }

func (d Described) key() string { return serverPrefix + d.Server + " " + ShortID(d.Config) }

// Server is an MCP server that was seen.
type Server struct {
	ID      string
	Name    string
	Status  Status
	Record  trust.Record
	Digest  string // of what would be approved
	Pending int    // how many tools and files differ from what was approved

	key string
}

// Tools compares what a server says about its tools with what was
// approved, and returns the names of those that are off.
func (l *Library) Tools(d Described) (off []string, err error) {
	texts := map[string]string{}
	now := map[string]string{}
	for name, text := range d.Tools {
		sum := digest.Of(text)
		now[toolPrefix+name], texts[sum] = sum, text
	}
	old, known := l.records()[d.key()]
	if known && old.Off {
		return slices.Sorted(maps.Keys(d.Tools)), nil
	}
	pinned := maps.Clone(old.Files)
	if pinned == nil {
		pinned = map[string]string{}
	}
	for path, sum := range d.Files {
		if _, ok := pinned[filePrefix+path]; !ok && len(pinned) < maxPinned {
			pinned[filePrefix+path] = sum
		}
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		switch was, ok := pinned[name]; {
		case !known && len(pinned) < maxPinned:
			pinned[name] = now[name]
		case !ok || was != now[name]:
			off = append(off, strings.TrimPrefix(name, toolPrefix))
		}
	}
	var pending map[string]string
	if len(off) > 0 {
		pending = now
		for name, sum := range pinned {
			if strings.HasPrefix(name, filePrefix) {
				pending[name] = sum
			}
		}
	}
	if known && maps.Equal(pinned, old.Files) && maps.Equal(pending, old.Pending) {
		return off, nil
	}
	return off, l.pin(d, pinned, pending, texts)
}

// pin stores what is approved of a server and what waits for review.
func (l *Library) pin(d Described, pinned, pending, texts map[string]string) error {
	return l.change(d.key(), func(r *trust.Record) error {
		if r.At.IsZero() {
			r.By, r.At = firstUse, l.Now().UTC().Truncate(time.Second)
		}
		r.Files, r.Pending = pinned, pending
		for _, text := range texts {
			if err := l.Lock.KeepText(text); err != nil {
				return err
			}
		}
		return l.Lock.KeepFiles(d.Files)
	})
}

// Files returns why a server may not be started: a file that it starts is not the one that was approved.
func (l *Library) Files(d Described) error {
	old, known := l.records()[d.key()]
	if !known {
		return nil
	}
	if old.Off {
		return fmt.Errorf("it was switched off (chorus skill approve %s%s)", serverPrefix, d.Server)
	}
	pending := maps.Clone(old.Files)
	var changed []string
	for path, sum := range d.Files {
		if was, ok := old.Files[filePrefix+path]; ok && was != sum {
			changed = append(changed, path)
			pending[filePrefix+path] = sum
		}
	}
	if len(changed) == 0 {
		return nil
	}
	slices.Sort(changed)
	if !maps.Equal(pending, old.Pending) {
		if err := l.pin(d, old.Files, pending, nil); err != nil {
			return err
		}
	}
	return fmt.Errorf("what it starts is not what was approved (%s changed): look at it with chorus skill diff %s%s, then run chorus skill approve %s%s",
		strings.Join(changed, ", "), serverPrefix, d.Server, serverPrefix, d.Server)
}

// Servers lists the MCP servers that were seen, by name.
func (l *Library) Servers() []Server {
	var out []Server
	records := l.records()
	for _, key := range slices.Sorted(maps.Keys(records)) {
		rest, ok := strings.CutPrefix(key, serverPrefix)
		if !ok {
			continue
		}
		name, _, _ := strings.Cut(rest, " ")
		s := Server{ID: ShortID(key), Name: serverPrefix + name, Record: records[key], Status: On, key: key}
		next := s.Record.Files
		switch {
		case s.Record.Off:
			s.Status = Off
		case len(s.Record.Pending) > 0:
			s.Status, next = Changed, s.Record.Pending
			s.Pending = len(differing(s.Record))
		}
		data, err := json.Marshal(next) // its keys are sorted
		if err != nil {
			continue // strings always encode
		}
		s.Digest = digest.Of(data)
		out = append(out, s)
	}
	return out
}

func differing(r trust.Record) []string {
	var names []string
	for name, sum := range r.Pending {
		if r.Files[name] != sum {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// ServerChanges returns how a server differs from what was approved.
func (l *Library) ServerChanges(s Server) []trust.Change {
	var out []trust.Change
	for _, name := range differing(s.Record) {
		c := trust.Change{Path: name, How: "changed"}
		was := s.Record.Files[name]
		if was == "" {
			c.How = "is new"
		}
		before, there := l.Lock.Text(was)
		after, also := l.Lock.Text(s.Record.Pending[name])
		if (there || was == "") && also {
			c.Diff = Visible(l.Diff(name, before, after))
		}
		out = append(out, c)
	}
	return out
}

// ErrNothing means that there is nothing to approve.
var ErrNothing = errors.New("nothing has changed")

// ApproveServer allows a server's tools and files to be used as last
// seen, which must be the version that was shown.
func (l *Library) ApproveServer(s Server, digest, by string) error {
	if s.Digest != digest {
		return ErrMoved
	}
	if s.Status == On {
		return ErrNothing
	}
	return l.change(s.key, func(r *trust.Record) error {
		if len(r.Pending) > 0 {
			r.Files = r.Pending
		}
		r.Pending, r.Off, r.By, r.At = nil, false, by, l.Now().UTC().Truncate(time.Second)
		return nil
	})
}

// DisableServer disables a server's tools until it is approved again.
func (l *Library) DisableServer(s Server, by string) error {
	return l.change(s.key, func(r *trust.Record) error {
		r.Off, r.By, r.At = true, by, l.Now().UTC().Truncate(time.Second)
		return nil
	})
}
