package runsetup

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"chorus/internal/chat"
	"chorus/internal/memory"
	"chorus/internal/tool"
	"chorus/internal/tool/files"
	"chorus/internal/tool/remember"
)

// memoryRoots returns the named roots that give access to a thread's
// memory files and to nothing next to them.
func (s *Setup) memoryRoots(thread chat.ThreadID) []files.Root {
	var out []files.Root
	for _, f := range memory.Of(thread) {
		if n := len(out); n > 0 && out[n-1].Name == f.Root() {
			out[n-1].Only = append(out[n-1].Only, path.Base(f.Path))
			continue
		}
		out = append(out, files.Root{Name: f.Root(), Dir: filepath.Join(s.Home.Dir(), filepath.FromSlash(path.Dir(f.Path))), Writable: true, Only: []string{path.Base(f.Path)}})
	}
	return out
}

// memoryAt returns the memory file at a place of the file tools, or false if it is not one.
func memoryAt(thread chat.ThreadID, place files.Place) (memory.File, bool) {
	if place.Root == "docs" && thread.Agent() != "" {
		f, err := memory.Parse("agents/" + thread.Agent() + "/docs/" + place.Path)
		return f, err == nil
	}
	for _, f := range memory.Of(thread) {
		if f.Tool() == place.String() {
			return f, true
		}
	}
	return memory.File{}, false
}

// announce records who is about to write to memory, so that the change is attributed to them.
func (s *Setup) announce(thread chat.ThreadID) func(ctx context.Context, toolName string, place files.Place, content string) error {
	return func(ctx context.Context, toolName string, place files.Place, content string) error {
		f, ok := memoryAt(thread, place)
		switch {
		case !ok:
			return nil
		case len(content) > memory.MaxFile:
			return tool.Mistake(fmt.Sprintf("%s would have %d bytes, and at most %d are read: keep only what every conversation needs.", place, len(content), memory.MaxFile))
		case !utf8.ValidString(content) || strings.ContainsRune(content, 0):
			return tool.Mistake(place.String() + " must be text in UTF-8.")
		}
		call := tool.CallFrom(ctx)
		return s.Memory.Announce(ctx, f, content, memory.Origin{Who: Voices(call.Senders), Thread: thread, Call: call.ID, How: toolName})
	}
}

// Voices names the senders, for people who read what was stored on their words.
func Voices(senders []chat.Principal) string {
	var out []string
	for _, p := range senders {
		p = p.Person()
		if name := fmt.Sprintf("%s (%s)", cmp.Or(p.Name, p.ID), p.Kind); !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return strings.Join(out, ", ")
}

// memoryTools returns the remember and recall tools of a thread.
func (s *Setup) memoryTools(thread chat.ThreadID, roots *files.Roots) []tool.Tool {
	return []tool.Tool{remember.New(roots), remember.Recall(func(ctx context.Context, words string, limit int) ([]remember.Hit, error) {
		return s.Recall(ctx, thread, tool.CallFrom(ctx).Senders, words, limit)
	})}
}

// memoryNotes show each of a thread's memory files in its current state: the
// whole file at first and after a cut, then only what changed.
func (s *Setup) memoryNotes(thread chat.ThreadID) []NoteSource {
	var out []NoteSource
	for _, f := range memory.Of(thread) {
		what := strings.ToLower(strings.TrimSpace(strings.TrimSuffix(f.Title, "("+f.Transport+")")))
		out = append(out, NoteSource{What: what, Gone: memory.Empty, Difference: memory.Difference, Text: func(ctx context.Context, _ NoteContext) (string, error) {
			c, err := s.Memory.Read(ctx, f)
			return c.Render(), err
		}})
	}
	return out
}
