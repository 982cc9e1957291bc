// Package memory is what agents keep from one conversation to the next: Markdown files in
// the home folder for everybody (MEMORY.md), for one transport and for one channel, and in
// addition IDENTITY.md, SYSTEM.md and the docs of agents.
//
// The files are authoritative: people and agents edit them as they like. If several
// machines share the versions, they also share the files: an outdated file is updated
// before it is treated as a change. The package promises that:
//   - reading the files costs next to nothing while they do not change;
//   - each change is kept as a version that says who made it;
//   - an announced change is never taken for one by hand;
//   - a file that was edited into nonsense affects no other.
//
// What an agent wrote is shown as the words of those on whose behalf it wrote them: it grants nothing.
package memory

import (
	"fmt"
	"path"
	"strings"

	"chorus/internal/chat"
)

// Scope says for whom a file is.
type Scope string

// The scopes, from widest to narrowest, followed by the other kinds of files.
const (
	Global    Scope = "global"
	Transport Scope = "transport"
	Channel   Scope = "channel"
	Docs      Scope = "docs" // of one agent
)

// The names of the files.
const (
	Name     = "MEMORY.md"
	System   = "SYSTEM.md"   // what agents have changed in their environment
	Identity = "IDENTITY.md" // what every agent is told first
)

// File is one memory file. It need not exist.
type File struct {
	Path  string // relative to the home folder, with forward slashes
	Scope Scope
	Title string // what people and models are told it is
	// Transport and Place say where the file applies; Place is "" for all of a transport.
	Transport, Place string
}

// Root returns the named root of the file tools that contains the file: "memory/channel".
func (f File) Root() string { return "memory/" + string(f.Scope) }

// Tool returns the file's name for file tools.
func (f File) Tool() string {
	if f.Scope == Docs {
		_, rest, _ := strings.Cut(f.Path, "/docs/")
		return "@docs/" + rest
	}
	return "@" + f.Root() + "/" + path.Base(f.Path)
}

// Of returns the files that a thread is shown and may write, widest first.
func Of(thread chat.ThreadID) []File {
	transport := thread.Transport()
	return []File{
		{Path: Name, Scope: Global, Title: "Global Memory"},
		{Path: System, Scope: Global, Title: "Environment Log"},
		{Path: transport + "/" + Name, Scope: Transport, Title: "Transport Memory (" + transport + ")", Transport: transport},
		{Path: path.Join(path.Dir(thread.Dir()), Name), Scope: Channel, Title: "Channel Memory", Transport: transport, Place: thread.Place()},
	}
}

// Parse parses the path of a memory file relative to the home folder. An error says what exists.
func Parse(name string) (File, error) {
	bad := fmt.Errorf("%.200q is not a memory file; there are MEMORY.md, SYSTEM.md, IDENTITY.md, TRANSPORT/MEMORY.md, TRANSPORT/CHANNEL/MEMORY.md and agents/AGENT/docs/….md", name)
	parts := strings.Split(name, "/")
	if path.Clean(name) != name || strings.ContainsAny(name, "\\\x00") {
		return File{}, bad
	}
	switch {
	case name == Name:
		return File{Path: name, Scope: Global, Title: "Global Memory"}, nil
	case name == System:
		return File{Path: name, Scope: Global, Title: "Environment Log"}, nil
	case name == Identity:
		return File{Path: name, Scope: Global, Title: "Identity"}, nil
	case len(parts) > 3 && parts[0] == "agents" && chat.ValidAgentName(parts[1]) && parts[2] == "docs" && strings.HasSuffix(name, ".md"):
		return File{Path: name, Scope: Docs, Title: "Docs of " + parts[1]}, nil
	case len(parts) == 2 && parts[1] == Name && validTransport(parts[0]):
		return File{Path: name, Scope: Transport, Title: "Transport Memory (" + parts[0] + ")", Transport: parts[0]}, nil
	case len(parts) == 3 && parts[2] == Name && validTransport(parts[0]):
		place, err := chat.DecodeSegment(parts[1])
		if err != nil {
			place = parts[1] // it was too long for a name, but still identifies its files
		}
		return File{Path: name, Scope: Channel, Title: "Channel Memory", Transport: parts[0], Place: place}, nil
	}
	return File{}, bad
}

func validTransport(name string) bool {
	_, err := chat.ParseThreadID(name + ":place:thread")
	return err == nil
}
