package chatcommand

import (
	"context"
	"fmt"
	"strings"

	"chorus/internal/connector/slash"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/platform"
)

func (t *turn) ref() operations.SessionRef { return operations.SessionRef{ID: t.session.ID} }

func (t *turn) diff(ctx context.Context, _ string) (string, error) {
	changed, err := operations.SessionDiff.Call(ctx, t.to, t.by, t.ref())
	if err != nil || changed.Text == "" {
		return "nothing has changed", err
	}
	return fenced(changed.Text), nil
}

// notesUsage describes how to read and write notes.
const notesUsage = "Usage: /notes, /notes get KEY, /notes set KEY TEXT, /notes clear [KEY]"

func (t *turn) notes(ctx context.Context, rest string) (string, error) {
	word, rest := cut(rest)
	key, value := cut(rest)
	switch strings.ToLower(word) {
	case "", "list":
		return t.listNotes(ctx)
	case "get":
		list, err := operations.SessionNotes.Call(ctx, t.to, t.by, t.ref())
		for _, n := range list.Items {
			if n.Key == key {
				return fenced(n.Value), nil
			}
		}
		return "there is no note " + key, err
	case "set":
		if key == "" || value == "" {
			break
		}
		_, err := operations.SetSessionNote.Call(ctx, t.to, t.by, operations.SessionNoteText{ID: t.session.ID, Key: key, Value: value})
		return "noted", err
	case "clear":
		done, err := operations.ClearSessionNotes.Call(ctx, t.to, t.by, operations.SessionNoteRef{ID: t.session.ID, Key: key})
		return fmt.Sprintf("%d cleared", done.Cleared), err
	}
	return "", operation.InvalidField("line", "%s", notesUsage)
}

func (t *turn) listNotes(ctx context.Context) (string, error) {
	list, err := operations.SessionNotes.Call(ctx, t.to, t.by, t.ref())
	if err != nil || len(list.Items) == 0 {
		return "there are no notes", err
	}
	var b strings.Builder
	for _, n := range list.Items {
		fmt.Fprintf(&b, "%s: %s\n", n.Key, n.Value)
	}
	return fenced(b.String()), nil
}

// noteKeys suggests continuations of a line that names a note.
func (t *turn) noteKeys(ctx context.Context, typed string) (out []platform.Choice) {
	list, err := operations.SessionNotes.Call(ctx, t.to, t.by, t.ref())
	if err != nil {
		return nil // no suggestions
	}
	for _, n := range list.Items {
		if strings.HasPrefix(n.Key, typed) {
			out = append(out, platform.Choice{Label: n.Key, Value: n.Key})
		}
	}
	return out
}

func (t *turn) prompts(ctx context.Context, _ string) (string, error) {
	list, err := operations.SessionPrompts.Call(ctx, t.to, t.by, t.ref())
	if err != nil || len(list.Items) == 0 {
		return "there are no prompts; MCP servers provide them, and they start with the first message", err
	}
	var b strings.Builder
	for _, p := range list.Items {
		fmt.Fprintln(&b, strings.TrimSuffix(p.Usage+": "+p.About, ": "))
	}
	return fenced(b.String()), nil
}

// promptNames returns the prompts of MCP servers that match a line /server:….
func (t *turn) promptNames(ctx context.Context, line string) (out []slash.Suggestion) {
	list, err := operations.SessionPrompts.Call(ctx, t.to, t.by, t.ref())
	if err != nil {
		return nil // no suggestions
	}
	for _, p := range list.Items {
		if strings.HasPrefix(p.Name, line) {
			out = append(out, slash.Suggestion{Line: p.Name + " ", Label: p.Usage, About: p.About})
		}
	}
	return out
}

// fenced returns a block of text in Markdown, whatever the text contains.
func fenced(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "\n" + strings.TrimRight(text, "\n") + "\n" + fence
}
