package remote

import (
	"context"
	"slices"
	"strings"

	"chorus/internal/connector/slash"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/transport/repl"
)

// Command implements repl.Session. It answers commands about this terminal here, and sends everything else to the server.
func (s *Session) Command(ctx context.Context, line string) (string, error) {
	name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	switch strings.ToLower(name) {
	case "/approve-all":
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.yes = !s.yes; s.yes {
			return "every request is approved while this terminal is open; what a rule denies stays denied", nil
		}
		return "you will be asked again", nil
	case "/resume":
		return s.resume(ctx, strings.TrimSpace(rest))
	}
	if s.ID() == "" {
		if answer, done, err := s.first(ctx, line); err != nil || done {
			return answer, err
		}
	}
	answer, err := operations.RunCommand.Call(ctx, s.service, s.by, operations.CommandLine{ID: s.ID(), Line: line})
	switch {
	case err != nil:
		return "", err
	case answer.Confirm != "":
		return answer.Text + "\n" + slash.WriteAgain, nil
	case answer.Said:
		return "sent to the agent", nil
	}
	_, err = s.refresh(ctx) // the status line shows the model and the mode
	return repl.PlainBlock(answer.Text), err
}

// first runs a command before the session exists. done is false if the session exists then, because the command
// needs it.
func (s *Session) first(ctx context.Context, line string) (answer string, done bool, err error) {
	s.mu.Lock()
	planned, before := s.planned, s.now
	s.mu.Unlock()
	out, err := operations.RunFirst.Call(ctx, s.service, s.by, operations.FirstCommand{NewSession: planned, Line: line})
	if err != nil {
		return "", false, err
	}
	if out.Begin {
		_, err = s.create(ctx, "")
		return "", false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now.ID != "" {
		return "", false, nil // a file has been attached meanwhile
	}
	if model := joined(out.Session.Provider, out.Session.Model); model != joined(before.Provider, before.Model) {
		s.planned.Provider, s.planned.Model = "", model
	}
	s.planned.Mode = out.Session.Mode
	s.now = out.Session
	return repl.PlainBlock(out.Text), true, nil
}

// Change sets another mode or other permissions for the session's next prompts.
func (s *Session) Change(ctx context.Context, in operations.SessionChange) error {
	if _, err := s.create(ctx, ""); err != nil {
		return err
	}
	in.ID = s.ID()
	now, err := operations.ChangeSession.Call(ctx, s.service, s.by, in)
	if err == nil {
		s.mu.Lock()
		s.now = now
		s.mu.Unlock()
	}
	return err
}

// Commands implements repl.Commander: the commands that the server adds.
func (s *Session) Commands(ctx context.Context) []repl.Command {
	list, err := s.complete(ctx, "")
	if err != nil {
		return nil // an older server; it answers unknown commands itself
	}
	var out []repl.Command
	for _, c := range list.Items {
		out = append(out, repl.Command{Name: strings.TrimPrefix(c.Label, "/"), About: c.About})
	}
	return out
}

// Complete implements repl.Completer: the server completes its commands and files.
func (s *Session) Complete(ctx context.Context, typed string) ([]repl.Completion, error) {
	if rest, ok := strings.CutPrefix(typed, "/resume "); ok {
		list, err := s.others(ctx)
		return repl.ResumeChoices(list[:min(len(list), maxListed)], strings.TrimSpace(rest)), err
	}
	list, err := s.complete(ctx, typed)
	var out []repl.Completion
	for _, c := range list.Items {
		out = append(out, repl.Completion(c))
	}
	return out, err
}

// complete asks the server how a line can continue.
func (s *Session) complete(ctx context.Context, typed string) (operation.List[operations.Completion], error) {
	s.mu.Lock()
	now, planned := s.now, s.planned
	s.mu.Unlock()
	if now.ID != "" {
		return operations.CompleteCommand.Call(ctx, s.service, s.by, operations.CommandStart{ID: now.ID, Line: typed})
	}
	return operations.CompleteFirst.Call(ctx, s.service, s.by,
		operations.FirstLineStart{Line: typed, Agent: planned.Agent, WorkspacePath: planned.WorkspacePath, Model: joined(now.Provider, now.Model)})
}

// maxListed is how many sessions /resume shows.
const maxListed = 10

// others returns the other visible sessions, the last active first.
func (s *Session) others(ctx context.Context) (list []repl.Listed, err error) {
	page, err := operations.ListSessions.Call(ctx, s.service, s.by, operations.SessionQuery{Limit: 50})
	for _, other := range page.Items {
		if other.ID != s.ID() {
			list = append(list, repl.Listed{ID: other.ID, Active: other.MovedAt, Title: other.Title})
		}
	}
	return list, err
}

func (s *Session) resume(ctx context.Context, name string) (string, error) {
	list, err := s.others(ctx)
	switch {
	case err != nil:
		return "", err
	case name == "":
		return repl.Others(list[:min(len(list), maxListed)]), nil
	}
	one, err := repl.Choose(list, name)
	if err != nil {
		return "", err
	}
	return "", &repl.Resume{ID: one.ID}
}

func (s *Session) refresh(ctx context.Context) (operations.Session, error) {
	now, err := operations.GetSession.Call(ctx, s.service, s.by, operations.SessionRef{ID: s.ID()})
	if err == nil {
		s.mu.Lock()
		s.now = now
		s.mu.Unlock()
	}
	return now, err
}

// Says implements repl.Sayer: calling a skill by its name is a prompt.
func (s *Session) Says(ctx context.Context, line string) bool {
	name, rest, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "/"), " ")
	if name == "skill" {
		name, _, _ = strings.Cut(strings.TrimSpace(rest), " ")
	}
	list, err := s.skills(ctx)
	return err == nil && slices.ContainsFunc(list, func(one operations.Skill) bool { return one.Name == name })
}

func (s *Session) skills(ctx context.Context) ([]operations.Skill, error) {
	s.mu.Lock()
	place := operations.SkillPlace{Session: s.now.ID}
	if place.Session == "" {
		place.Workspace, place.Agent = s.planned.WorkspacePath, s.now.Agent
	}
	s.mu.Unlock()
	list, err := operations.ListSkills.Call(ctx, s.service, s.by, operations.SkillQuery{SkillPlace: place, Status: "on"})
	return list.Items, err
}
