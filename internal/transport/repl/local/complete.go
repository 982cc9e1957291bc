package local

import (
	"context"
	"slices"
	"strings"

	"chorus/internal/chatcommand"
	"chorus/internal/connector/slash"
	"chorus/internal/platform"
	"chorus/internal/service"
	"chorus/internal/settings"
	"chorus/internal/store"
	"chorus/internal/transport/repl"
)

// maxOffered limits the file suggestions; nobody reads more.
const maxOffered = 12

var _ repl.Completer = (*Session)(nil)

// Complete implements repl.Completer with the suggestions of the server's pages, for this terminal's conversation.
func (s *Session) Complete(ctx context.Context, typed string) ([]repl.Completion, error) {
	if name, ok := strings.CutPrefix(typed, "@"); ok {
		found, err := service.FindFiles(ctx, s.dir, name, maxOffered)
		var out []repl.Completion
		for _, path := range found {
			out = append(out, repl.Completion{Line: "@" + path + " ", Label: path})
		}
		return out, err
	}
	name, rest, hasArgs := strings.Cut(strings.TrimPrefix(typed, "/"), " ")
	switch {
	case !hasArgs:
		return s.callable(name)
	case name == "resume":
		list, err := s.others(ctx)
		return repl.ResumeChoices(list, strings.TrimSpace(rest)), err
	}
	ask, err := s.asker()
	if err != nil {
		return nil, err
	}
	found, at := slash.Suggest(append(chatcommand.Builtin(), ask.set.List()...), typed)
	switch {
	case at == nil || !at.Option.Completes:
	case at.Path == "model":
		found = chatcommand.Models(ctx, ask.to, s.app.Service.LocalCaller(), *at, s.Info().Model)
	default:
		choices, _ := ask.set.Complete(ctx, platform.Invocation{Path: at.Path, Text: map[string]string{at.Option.Name: at.Typed}}, at.Option.Name)
		for i, c := range choices {
			found = slices.Insert(found, i, slash.Suggestion{Line: at.With(c.Value), Label: c.Label})
		}
	}
	var out []repl.Completion
	for _, one := range found {
		out = append(out, repl.Completion(one))
	}
	return out, nil
}

// callable returns the skills whose names begin so.
func (s *Session) callable(name string) (out []repl.Completion, err error) {
	b, err := s.app.Setup.Toolbox(s.thread, s.dir)
	if err != nil {
		return nil, err
	}
	list, err := s.app.Setup.CallableSkills(b)
	for _, one := range list {
		if strings.HasPrefix(one.Name, name) {
			out = append(out, repl.Completion{Line: "/" + one.Name + " ", Label: strings.TrimSpace("/" + one.Name + " " + one.ArgumentHint), About: one.Description})
		}
	}
	return out, err
}

// others returns the other sessions of this folder, the last active first.
func (s *Session) others(ctx context.Context) ([]repl.Listed, error) {
	rows, err := s.app.DB.Threads(ctx, store.ThreadFilter{Transport: "cli", Place: settings.Place(s.dir), Limit: maxListed})
	var list []repl.Listed
	for _, row := range rows {
		if row.ID != s.thread {
			list = append(list, repl.Listed{ID: row.ID.Thread(), Active: row.LastActive, Title: row.Title})
		}
	}
	return list, err
}
