// Package memories implements the operations on memory files, and searches memory and past conversations.
package memories

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/memory"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/runsetup"
	"chorus/internal/service"
	"chorus/internal/tool/files"
)

// Handler implements the operations on memory files.
type Handler struct{ app *service.Service }

// New makes a handler.
func New(app *service.Service) *Handler { return &Handler{app} }

var _ operations.Memory = (*Handler)(nil)

// shownVersions is how many changes of a file are shown.
const shownVersions = 100

// seesMemory reports whether a caller may read a file. Those who run the home may read all of them. Others may read what
// agents see in every conversation, and what belongs to the place where they speak or where their conversations are
// held.
func seesMemory(by operation.Caller, f memory.File) bool {
	if by.May(operation.Admin) {
		return true
	}
	switch f.Scope {
	case memory.Global:
		return f.Path != memory.Identity && by.Principal.ID != ""
	case memory.Transport:
		return f.Transport != "" && f.Transport == transportOf(by)
	case memory.Channel:
		return writesMemory(by, f)
	default:
		return false
	}
}

func transportOf(by operation.Caller) string {
	transport, _, _ := strings.Cut(by.Here, ":")
	return transport
}

// writesMemory reports whether a file is the memory of the caller's own conversations, or of the place where they speak:
// agents also write there on the caller's behalf.
func writesMemory(by operation.Caller, f memory.File) bool {
	return ownsMemory(by, f) || f.Scope == memory.Channel && by.Here != "" && by.Here == f.Transport+":"+f.Place
}

// ownsMemory reports whether a file is the memory of the caller's conversations only.
func ownsMemory(by operation.Caller, f memory.File) bool {
	return by.Principal.ID != "" && f.Scope == memory.Channel && f.Transport == "web" && f.Place == by.Principal.OwnPlace()
}

// scoped returns the file that a scope's name means for a caller: in the place where they speak, else their own conversations in the browser.
func scoped(by operation.Caller, name string) (memory.File, bool) {
	if name == string(memory.Global) {
		name = memory.Name
		f, err := memory.Parse(name)
		return f, err == nil
	}
	here := by.Here
	if here == "" && by.Principal.ID != "" {
		here = "web:" + by.Principal.OwnPlace()
	}
	thread, err := chat.ParseThreadID(here + ":any")
	if err != nil {
		return memory.File{}, false
	}
	for _, f := range memory.Of(thread) {
		if string(f.Scope) == name {
			return f, true
		}
	}
	return memory.File{}, false
}

// memoryFile finds a file that the caller may see, and change if that is requested.
func (o *Handler) memoryFile(by operation.Caller, path string, change bool) (memory.File, error) {
	f, ok := scoped(by, path)
	if !ok {
		var err error
		if f, err = memory.Parse(path); err != nil {
			return f, operation.InvalidField("path", "%s", err)
		}
	}
	switch {
	case !seesMemory(by, f):
		return f, operation.Errorf(operation.NotFound, "there is no memory file %.200q; `chorus memory list` lists them", path)
	case change && !by.May(operation.Admin) && !writesMemory(by, f):
		return f, operation.Errorf(operation.Forbidden, "%s is part of everybody's conversations, so only those who run this Chorus can change it: with the scope admin, or at its terminal with `chorus memory edit %s`", f.Path, f.Path)
	}
	return f, nil
}

// Nouns implements operation.Namer.
func (o *Handler) Nouns() map[string]operation.Noun {
	return map[string]operation.Noun{"memory": {Suggest: o.names}}
}

// names suggests the files that a caller may name, those of the current place by their scopes.
func (o *Handler) names(ctx context.Context, by operation.Caller, _ string) (names []string, err error) {
	if by.Here != "" {
		names = []string{string(memory.Channel), string(memory.Transport), string(memory.Global)}
	}
	list, err := o.ListMemory(ctx, by, operation.None{})
	for _, f := range list.Items {
		names = append(names, f.Path)
	}
	return names, err
}

// ListMemory implements the operation of that name.
func (o *Handler) ListMemory(ctx context.Context, by operation.Caller, _ operation.None) (operation.List[operations.MemoryFile], error) {
	out := operation.List[operations.MemoryFile]{Items: []operations.MemoryFile{}}
	all, err := o.app.Setup.Memory.All(ctx)
	if err != nil {
		return out, err
	}
	for _, f := range all {
		if !seesMemory(by, f) {
			continue
		}
		shown, err := o.showMemory(ctx, f)
		if err != nil {
			return out, err
		}
		out.Items = append(out.Items, shown.MemoryFile)
	}
	return out, nil
}

// GetMemory implements the operation of that name.
func (o *Handler) GetMemory(ctx context.Context, by operation.Caller, in operations.MemoryRef) (operations.MemoryText, error) {
	f, err := o.memoryFile(by, in.Path, false)
	if err != nil {
		return operations.MemoryText{}, err
	}
	return o.showMemory(ctx, f)
}

func (o *Handler) showMemory(ctx context.Context, f memory.File) (operations.MemoryText, error) {
	c, err := o.app.Setup.Memory.Read(ctx, f)
	if err != nil {
		return operations.MemoryText{}, err
	}
	hide := o.app.Logs.Redactor()
	out := operations.MemoryText{Text: hide.Text(c.Text), MemoryFile: operations.MemoryFile{Path: f.Path, Scope: string(f.Scope), Title: f.Title, Size: c.Size, Version: c.Version, Problem: c.Problem}}
	if c.Version > 0 {
		v, has, err := o.app.Setup.Memory.Version(ctx, f, c.Version)
		if err != nil {
			return out, err
		}
		if has {
			out.ChangedBy, out.ChangedAt = wrote(v.Origin), v.At
		}
	}
	for _, p := range c.Parts() {
		out.Parts = append(out.Parts, operations.MemoryPart{By: wrote(p.Origin), Text: hide.Text(p.Text)})
	}
	return out, nil
}

// wrote says who made a change.
func wrote(by memory.Origin) string {
	switch {
	case by.Who == "" && by.How == memory.ByHand:
		return memory.ByHand
	case by.Owner:
		return by.Who
	default:
		return "on the words of " + cmp.Or(by.Who, "somebody unknown")
	}
}

// changes returns the author of a change. Text from somebody who does not run the home is attributed to them.
func changes(by operation.Caller, how string) memory.Origin {
	return memory.Origin{Who: runsetup.Voices([]chat.Principal{by.Principal}), How: how, Owner: by.May(operation.Admin)}
}

// EditMemory implements the operation of that name.
func (o *Handler) EditMemory(ctx context.Context, by operation.Caller, in operations.MemoryEdit) (operations.MemoryText, error) {
	f, err := o.memoryFile(by, in.Path, true)
	if err != nil {
		return operations.MemoryText{}, err
	}
	seen := cmp.Or(in.Seen, -1)
	text := strings.ReplaceAll(in.Text, "\r\n", "\n") // forms send these
	if in.Add {
		now, err := o.app.Setup.Memory.Read(ctx, f)
		switch {
		case err != nil:
			return operations.MemoryText{}, err
		case strings.TrimSpace(text) == "":
			return operations.MemoryText{}, operation.InvalidField("text", "there is nothing to add; give a text")
		case now.Problem != "":
			return operations.MemoryText{}, operation.Errorf(operation.Conflict, "%s: %s", f.Path, now.Problem)
		case in.Seen == 0:
			seen = now.Version
		}
		text = memory.Append(now.Text, text)
	}
	if text = strings.TrimRight(text, "\n"); text != "" {
		text += "\n"
	}
	_, err = o.app.Setup.Memory.Write(ctx, f, text, seen, changes(by, "edit"))
	if errors.Is(err, memory.ErrMoved) {
		return operations.MemoryText{}, o.memoryMoved(ctx, f, text)
	}
	return o.changedMemory(ctx, f, err)
}

// memoryMoved is the answer to an edit of an outdated version: the current version, and the difference to the request.
func (o *Handler) memoryMoved(ctx context.Context, f memory.File, text string) error {
	now, err := o.app.Setup.Memory.Read(ctx, f)
	if err != nil {
		return err
	}
	moved := operation.Errorf(operation.Conflict, "%s was changed meanwhile; check it again before you change it", f.Path)
	moved.About = operations.MemoryConflict{Version: now.Version, Difference: o.app.Logs.Redactor().Text(files.UnifiedWhole(f.Path, now.Text, text))}
	return moved
}

// changedMemory returns a file after a change, or the error.
func (o *Handler) changedMemory(ctx context.Context, f memory.File, err error) (operations.MemoryText, error) {
	switch {
	case errors.Is(err, memory.ErrMoved):
		return operations.MemoryText{}, operation.Errorf(operation.Conflict, "%s was changed meanwhile; check it again before you change it", f.Path)
	case errors.Is(err, fs.ErrNotExist):
		return operations.MemoryText{}, operation.Errorf(operation.NotFound, "%s has no such version; `chorus memory history` lists them", f.Path)
	case err != nil:
		return operations.MemoryText{}, err
	}
	return o.showMemory(ctx, f)
}

// ForgetMemory implements the operation of that name.
func (o *Handler) ForgetMemory(ctx context.Context, by operation.Caller, in operations.MemoryForget) (operations.MemoryText, error) {
	f, err := o.memoryFile(by, in.Path, true)
	if err != nil {
		return operations.MemoryText{}, err
	}
	words := strings.Fields(strings.ToLower(in.Words))
	if in.ForGood {
		if !by.May(operation.Admin) && !ownsMemory(by, f) {
			return operations.MemoryText{}, operation.Errorf(operation.Forbidden, "others share the history of %s, so only those who run this Chorus can remove it for good; forget it without that, and it can be restored", f.Path)
		}
		if len(words) > 0 {
			return operations.MemoryText{}, operation.InvalidField("words", "only a whole file can be forgotten for good; leave the words out")
		}
		err := o.app.Setup.Memory.Forget(ctx, f)
		return o.changedMemory(ctx, f, err)
	}
	c, err := o.app.Setup.Memory.Read(ctx, f)
	if err != nil {
		return operations.MemoryText{}, err
	}
	left := ""
	if len(words) > 0 {
		for _, line := range memory.Lines(c.Text) {
			if !hasAll(line, words) {
				left += line + "\n"
			}
		}
		if len(memory.Lines(left)) == len(memory.Lines(c.Text)) {
			return operations.MemoryText{}, operation.Errorf(operation.NotFound, "no line of %s contains these words", f.Path)
		}
	}
	_, err = o.app.Setup.Memory.Write(ctx, f, left, c.Version, changes(by, "forget"))
	return o.changedMemory(ctx, f, err)
}

// hasAll reports whether a line contains every word.
func hasAll(line string, words []string) bool {
	line = strings.ToLower(line)
	for _, w := range words {
		if !strings.Contains(line, w) {
			return false
		}
	}
	return true
}

// MemoryHistory implements the operation of that name.
func (o *Handler) MemoryHistory(ctx context.Context, by operation.Caller, in operations.MemoryRef) (operation.List[operations.MemoryVersion], error) {
	out := operation.List[operations.MemoryVersion]{Items: []operations.MemoryVersion{}}
	f, err := o.memoryFile(by, in.Path, false)
	if err != nil {
		return out, err
	}
	list, err := o.app.Setup.Memory.History(ctx, f)
	if err != nil {
		return out, err
	}
	list = list[:min(len(list), shownVersions+1)]
	texts := make([]string, len(list)+1)
	for i, v := range list {
		whole, _, err := o.app.Setup.Memory.Version(ctx, f, v.N)
		if err != nil {
			return out, err
		}
		texts[i] = o.app.Logs.Redactor().Text(whole.Text)
	}
	for i, v := range list[:min(len(list), shownVersions)] {
		shown := operations.MemoryVersion{Version: v.N, At: v.At, By: wrote(v.Origin), How: v.How, Diff: files.Unified(f.Path, texts[i+1], texts[i])}
		if v.Thread != "" {
			shown.Session = v.Thread.Thread()
		}
		out.Items = append(out.Items, shown)
	}
	return out, nil
}

// RestoreMemory implements the operation of that name.
func (o *Handler) RestoreMemory(ctx context.Context, by operation.Caller, in operations.MemoryRestore) (operations.MemoryText, error) {
	f, err := o.memoryFile(by, in.Path, true)
	if err != nil {
		return operations.MemoryText{}, err
	}
	list, err := o.app.Setup.Memory.History(ctx, f)
	if err != nil {
		return operations.MemoryText{}, err
	}
	switch {
	case len(list) == 0:
		return operations.MemoryText{}, operation.Errorf(operation.NotFound, "%s has no changes", f.Path)
	case in.Version == 0 && len(list) == 1: // before its first version there was no file
		_, err = o.app.Setup.Memory.Write(ctx, f, "", list[0].N, changes(by, "restore"))
		return o.changedMemory(ctx, f, err)
	}
	n := in.Version
	if n == 0 {
		n = list[1].N
	}
	_, err = o.app.Setup.Memory.Restore(ctx, f, n, list[0].N, changes(by, "restore"))
	return o.changedMemory(ctx, f, err)
}

// Recall implements the operation of that name.
func (o *Handler) Recall(ctx context.Context, by operation.Caller, in operations.RecallQuery) (operation.List[operations.Recalled], error) {
	out := operation.List[operations.Recalled]{Items: []operations.Recalled{}}
	all, err := o.app.Setup.Memory.All(ctx)
	if err != nil {
		return out, err
	}
	var readable []memory.File
	for _, f := range all {
		if seesMemory(by, f) {
			readable = append(readable, f)
		}
	}
	n := operation.Limit(in.Limit, 20, 100)
	hits, err := o.inMemory(ctx, readable, func(f memory.File) string { return f.Path }, in.Text)
	if err != nil {
		return out, err
	}
	for _, h := range hits {
		out.Items = append(out.Items, operations.Recalled{Where: h.Where, Who: h.Who, At: h.At, Text: h.Text})
	}
	places := []string{by.OwnPrefix()}
	if by.Here != "" && !by.May(operation.Admin) {
		places = append(places, by.Here+":")
	}
	said, err := o.inConversations(ctx, places, in.Text, n)
	if err != nil {
		return out, err
	}
	for _, h := range said {
		out.Items = append(out.Items, operations.Recalled{Where: h.Thread.Thread(), Who: h.Who, At: h.At, Text: o.app.Snippet(h.Snippet)})
	}
	out.Items = out.Items[:min(len(out.Items), n)]
	return out, nil
}
