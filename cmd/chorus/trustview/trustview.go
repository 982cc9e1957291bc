// Package trustview shows what a repository wants to be trusted with, as text for people and as JSON for scripts.
package trustview

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"chorus/internal/settings"
	"chorus/internal/text"
	"chorus/internal/trust"
)

// File is a file that names servers or hooks, in JSON.
type File struct {
	File     string         `json:"file"`
	Trusted  bool           `json:"trusted"`
	Servers  []server       `json:"servers,omitempty"`
	Hooks    []hook         `json:"hooks,omitempty"`
	Bound    []string       `json:"bound,omitempty"`
	Unbound  []string       `json:"unbound,omitempty"`
	Problems []string       `json:"problems,omitempty"`
	Changes  []trust.Change `json:"changes,omitempty"`
}

type server struct {
	Name    string   `json:"name"`
	Command string   `json:"command,omitempty"`
	Args    []string `json:"args,omitempty"`
	Hosts   []string `json:"hosts,omitempty"`
	URL     string   `json:"url,omitempty"`
	Env     []string `json:"env,omitempty"` // names only; values may be secrets
}

type hook struct {
	Event   string `json:"event"`
	Tools   string `json:"tools"`
	Command string `json:"command"`
	Seconds int    `json:"timeoutSeconds"`
}

// Of converts a file for scripts.
func Of(r settings.Repository) File {
	out := File{File: r.File, Trusted: r.Trusted, Unbound: r.Unbound, Problems: r.Problems, Changes: r.Changes}
	for _, s := range r.Servers {
		out.Servers = append(out.Servers, server{s.Name, s.Command, s.Args, s.Hosts, s.URL, slices.Sorted(maps.Keys(s.Env))})
	}
	for _, h := range r.Hooks {
		out.Hooks = append(out.Hooks, hook{h.Event, cmp.Or(h.Tools, "*"), h.Command, int(h.Timeout.Seconds())})
	}
	for _, name := range slices.Sorted(maps.Keys(r.Files)) {
		if r.Files[name] != trust.Absent {
			out.Bound = append(out.Bound, name)
		}
	}
	return out
}

// Text lists what an approval would cover: the servers, the hooks, the files, and how they
// differ from what was trusted before.
func Text(r settings.Repository) string {
	var out strings.Builder
	for _, s := range r.Servers {
		fmt.Fprintf(&out, "%s\n", s.Name)
		if s.Command != "" {
			fmt.Fprintf(&out, "  runs  %s", s.Command)
			for _, arg := range s.Args {
				fmt.Fprintf(&out, " %q", arg)
			}
			reaches := "nothing"
			if len(s.Hosts) > 0 {
				reaches = strings.Join(s.Hosts, ", ")
			}
			fmt.Fprintf(&out, "\n  reaches  %s\n", reaches)
		} else {
			fmt.Fprintf(&out, "  asks  %s\n", s.URL)
		}
		for _, name := range slices.Sorted(maps.Keys(s.Env)) {
			fmt.Fprintf(&out, "  gets  %s\n", name)
		}
	}
	for _, h := range r.Hooks {
		tools := cmp.Or(h.Tools, "*")
		fmt.Fprintf(&out, "%s calls of %s\n  runs  %s\n  for at most %s, where the agent's commands run\n", h.Event, tools, h.Command, h.Timeout)
	}
	for _, p := range r.Problems {
		fmt.Fprintf(&out, "problem: %s\n", p)
	}
	absent := 0
	for _, name := range slices.Sorted(maps.Keys(r.Files)) {
		if r.Files[name] == trust.Absent {
			absent++
			continue
		}
		fmt.Fprintf(&out, "covered: %s\n", name)
	}
	if absent > 0 {
		fmt.Fprintf(&out, "covered: %s that must stay empty, because a file there would be loaded\n", text.Count(absent, "place"))
	}
	if len(r.Files) > 0 {
		fmt.Fprintln(&out, "not covered: installed packages, and anything these files load only while running")
	}
	for _, text := range r.Unbound {
		fmt.Fprintf(&out, "not covered: %s\n", text)
	}
	for _, change := range r.Changes {
		fmt.Fprintf(&out, "since you trusted it, %s %s\n", change.Path, change.How)
		out.WriteString(change.Diff)
		if change.Diff != "" && !strings.HasSuffix(change.Diff, "\n") {
			out.WriteString("\n")
		}
	}
	return out.String()
}
