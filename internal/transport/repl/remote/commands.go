package remote

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"chorus/internal/operations"
	"chorus/internal/transport/repl"
)

// Command implements repl.Session: the orders that make sense from afar.
func (s *Session) Command(ctx context.Context, line string) (string, error) {
	name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	rest = strings.TrimSpace(rest)
	switch strings.ToLower(name) {
	case "/status":
		return s.status(ctx)
	case "/cost":
		return s.cost(ctx)
	case "/model":
		return s.model(ctx, rest)
	case "/mode":
		if rest != "" {
			return "", fmt.Errorf("the mode of a session on a server is chosen when it begins: chorus chat --server … --mode %s", rest)
		}
		if mode := s.session().Mode; mode != "" {
			return mode, nil
		}
		return "none", nil
	case "/approve-all":
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.yes = !s.yes; s.yes {
			return "every question is answered with yes while this terminal sits here", nil
		}
		return "questions are asked again", nil
	case "/tools":
		return s.tools(ctx)
	case "/skill":
		return s.listSkills(ctx, rest)
	case "/clear":
		done, err := operations.ClearSession.Call(ctx, s.service, s.by, operations.SessionRef{ID: s.ID()})
		return repl.Cleared(done.Messages), err
	case "/resume":
		return s.resume(ctx, rest)
	case "/diff", "/notes", "/prompts":
		return "", fmt.Errorf("%s looks at files of the server, and this terminal does not; ask the agent for it", name)
	default:
		return "", fmt.Errorf("there is no command %s; /help lists them", name)
	}
}

func (s *Session) tools(ctx context.Context) (string, error) {
	agent, err := operations.GetAgent.Call(ctx, s.service, s.by, operations.AgentRef{Name: s.session().Agent})
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, t := range agent.Tools {
		fmt.Fprintf(&out, "%-20s %s\n", t.Name, repl.FirstSentence(t.Description))
	}
	return out.String(), nil
}

func (s *Session) resume(ctx context.Context, name string) (string, error) {
	page, err := operations.ListSessions.Call(ctx, s.service, s.by, operations.SessionQuery{Limit: 50})
	if err != nil {
		return "", err
	}
	var list []repl.Listed
	for _, other := range page.Items {
		if other.ID != s.ID() && strings.HasPrefix(other.ID, name) {
			list = append(list, repl.Listed{ID: other.ID, Active: other.MovedAt, Title: other.Title})
		}
	}
	switch {
	case name == "":
		return repl.Others(list[:min(len(list), 10)]), nil
	case len(list) == 0:
		return "", fmt.Errorf("there is no other session %q among the last ones; /resume lists them", name)
	case len(list) > 1:
		return "", fmt.Errorf("%d sessions begin with %q; give more of the id", len(list), name)
	}
	return "", &repl.Resume{ID: list[0].ID}
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

func (s *Session) status(ctx context.Context) (string, error) {
	now, err := s.refresh(ctx)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	row := func(key, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-14s%s\n", key, value)
		}
	}
	row("session", now.ID)
	row("agent", now.Agent)
	row("directory", now.WorkspacePath)
	row("model", joined(now.Provider, now.Model))
	row("profile", now.Permissions)
	row("sandbox", now.Sandbox)
	row("mode", now.Mode)
	row("status", now.Status)
	if now.Queue > 0 {
		row("waiting", fmt.Sprint(now.Queue))
	}
	row("events", fmt.Sprint(now.Seq))
	return strings.TrimRight(b.String(), "\n"), nil
}

func (s *Session) cost(ctx context.Context) (string, error) {
	now, err := s.refresh(ctx)
	if err != nil {
		return "", err
	}
	dollars, err := now.Cost.MarshalJSON()
	return fmt.Sprintf("%d tokens in, %d out, %d read from a cache; $%s",
		now.Usage.InputTokens, now.Usage.OutputTokens, now.Usage.CacheReadTokens, dollars), err
}

func (s *Session) model(ctx context.Context, name string) (string, error) {
	now := s.session()
	if name == "" {
		return joined(now.Provider, now.Model), nil
	}
	made, err := operations.ResumeSession.Call(ctx, s.service, s.by, operations.ResumeRequest{ID: now.ID, WorkspacePath: now.WorkspacePath, Model: name})
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	s.now = made.Session
	s.mu.Unlock()
	return "from the next prompt on: " + joined(made.Session.Provider, made.Session.Model), nil
}

// Says implements repl.Sayer: a skill that is called by its name is a prompt.
func (s *Session) Says(ctx context.Context, line string) bool {
	name, rest, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "/"), " ")
	if name == "skill" {
		name, _, _ = strings.Cut(strings.TrimSpace(rest), " ")
	}
	list, err := s.skills(ctx)
	return err == nil && slices.ContainsFunc(list, func(one operations.Skill) bool { return one.Name == name })
}

func (s *Session) skills(ctx context.Context) ([]operations.Skill, error) {
	list, err := operations.ListSkills.Call(ctx, s.service, s.by, operations.SkillQuery{SkillPlace: operations.SkillPlace{Session: s.ID()}, Status: "on"})
	return list.Items, err
}

func (s *Session) listSkills(ctx context.Context, name string) (string, error) {
	if name != "" {
		return "", fmt.Errorf("there is no skill %s here that is on; /skill lists them", name)
	}
	list, err := s.skills(ctx)
	if err != nil {
		return "", err
	}
	var out []repl.Command
	for _, one := range list {
		out = append(out, repl.Command{Name: one.Name, About: one.Description})
	}
	return repl.SkillLines(out), nil
}
