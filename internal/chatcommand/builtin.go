package chatcommand

import (
	"context"
	"fmt"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/connector/slash"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/platform"
)

// Builtin lists the commands about the conversation itself that have no operation of their own.
func Builtin() []platform.Command {
	modes := platform.Option{Name: "mode", Description: "what the agent may do with the next message"}
	for _, m := range append(chat.ModeNames(), chat.NoMode) {
		modes.Choices = append(modes.Choices, platform.Choice{Label: m, Value: m})
	}
	does := platform.Option{Name: "what", Description: "left out: list"}
	for _, word := range []string{"list", "get", "set", "clear"} {
		does.Choices = append(does.Choices, platform.Choice{Label: word, Value: word})
	}
	return []platform.Command{
		{Name: "help", Description: "List the commands", Options: []platform.Option{{Name: "command", Description: "only this one, with its options"}}},
		{Name: "status", Description: "Agent, model, permissions, current state"},
		{Name: "cost", Description: "Tokens and money"},
		{Name: "why", Description: "Explain an answer: what it knew, what was allowed and read, what it cost", Options: []platform.Option{{Name: "answer", Description: "2: the second to last; or its address, which ends with #e and a number"}}},
		{Name: "diff", Description: "What has changed in the repository"},
		{Name: "notes", Description: "The agent's work notes", Options: []platform.Option{does, {Name: "key", Description: "which note", Completes: true}, {Name: "text", Description: "what it says"}}},
		{Name: "prompts", Description: "Prompts of MCP servers; use one with /server:prompt ARGUMENTS"},
		{Name: "tools", Description: "What the agent can use"},
		{Name: "model", Description: "Show or change the model", Options: []platform.Option{{Name: "name", Description: "the model that answers from the next message on", Completes: true}}},
		{Name: "mode", Description: "Show or change the mode", Options: []platform.Option{modes}},
		{Name: "steer", Description: "Interrupt the run with a message", Options: []platform.Option{{Name: "text", Description: "the message", Required: true}}},
		{Name: "stop", Description: "Stop the run; all: waiting messages too", Options: []platform.Option{{Name: "what", Description: "all: waiting messages too", Choices: []platform.Choice{{Label: "all", Value: "all"}}}}},
		{Name: "clear", Description: "Clear the context; the journal keeps all messages"},
	}
}

// beforehand are the commands that can be answered before the conversation exists.
func beforehand() []string {
	return []string{"help", "status", "cost", "why", "tools", "model", "mode", "stop", "clear"}
}

// builtin runs a command about the conversation itself. It returns false if the command is not one of those.
func (t *turn) builtin(ctx context.Context, name, rest string) (operations.CommandAnswer, bool, error) {
	carry := map[string]func(context.Context, string) (string, error){
		"help": t.help, "status": t.status, "cost": t.cost, "tools": t.tools, "model": t.model, "mode": t.mode, "steer": t.steer, "stop": t.stop, "clear": t.clear,
		"diff": t.diff, "why": t.why, "notes": t.notes, "prompts": t.prompts,
	}
	if name == "skill" && rest == "" {
		carry[name] = t.listSkills
	}
	do, ok := carry[name]
	if !ok {
		return operations.CommandAnswer{}, false, nil
	}
	text, err := do(ctx, rest)
	return operations.CommandAnswer{Text: text}, true, err
}

func (t *turn) help(_ context.Context, about string) (string, error) {
	if about != "" {
		if text := slash.Explain(t.list, about); text != "" {
			return text, nil
		}
		return "", operation.InvalidField("line", "%s", unknown(strings.TrimPrefix(about, "/"), t.list))
	}
	var b strings.Builder
	for _, c := range t.list {
		fmt.Fprintf(&b, "- `/%s` %s\n", c.Name, c.Description)
	}
	b.WriteString("\n`/help memory` explains one of them. Quote a value with spaces unless it is the last one, or name it: `when=\"every day at 9\"`.")
	return b.String(), nil
}

// rows formats names and values as a block of text, one per line. Rows without a value are left out.
func rows(pairs ...string) string {
	var b strings.Builder
	b.WriteString(block)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			fmt.Fprintf(&b, "%-14s%s\n", pairs[i], pairs[i+1])
		}
	}
	return b.String() + strings.TrimSpace(block)
}

// block starts a block of text in Markdown.
const block = "```\n"

func modelOf(s operations.Session) string {
	if s.Provider == "" {
		return s.Model
	}
	return s.Provider + "/" + s.Model
}

func (t *turn) status(context.Context, string) (string, error) {
	s := t.session
	waiting := ""
	if s.Queue > 0 {
		waiting = fmt.Sprint(s.Queue)
	}
	return rows("session", s.ID, "agent", s.Agent, "directory", s.WorkspacePath, "model", modelOf(s), "permissions", s.Permissions, "sandbox", s.Sandbox,
		"mode", s.Mode, "status", s.Status, "waiting", waiting, "events", fmt.Sprint(s.Seq)), nil
}

func (t *turn) cost(context.Context, string) (string, error) {
	dollars, err := t.session.Cost.MarshalJSON()
	u := t.session.Usage
	return fmt.Sprintf("%d tokens in, %d out, %d read from a cache; $%s", u.InputTokens, u.OutputTokens, u.CacheReadTokens, dollars), err
}

func (t *turn) tools(ctx context.Context, _ string) (string, error) {
	agent, err := operations.GetAgent.Call(ctx, t.to, t.by, operations.AgentRef{Name: t.session.Agent})
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, one := range agent.Tools {
		about, _, _ := strings.Cut(one.Description, ". ")
		fmt.Fprintf(&b, "- `%s` %s\n", one.Name, about)
	}
	return strings.TrimRight(b.String(), "\n"), nil
}

func (t *turn) model(ctx context.Context, name string) (string, error) {
	if name == "" {
		return modelOf(t.session), nil
	}
	err := t.change(ctx, operations.SessionChange{Model: name})
	return "from the next message on: " + modelOf(t.session), err
}

// change changes the session, or what it will be.
func (t *turn) change(ctx context.Context, in operations.SessionChange) (err error) {
	if t.planned == nil {
		in.ID = t.session.ID
		t.session, err = operations.ChangeSession.Call(ctx, t.to, t.by, in)
		return err
	}
	if in.Model != "" {
		t.planned.Provider, t.planned.Model = "", in.Model
	}
	if in.Mode != "" {
		t.planned.Mode = in.Mode
	}
	if in.Mode == chat.NoMode {
		t.planned.Mode = ""
	}
	t.session, err = operations.PreviewSession.Call(ctx, t.to, t.by, *t.planned)
	return err
}

func (t *turn) mode(ctx context.Context, mode string) (string, error) {
	if mode != "" {
		if err := t.change(ctx, operations.SessionChange{Mode: mode}); err != nil {
			return "", err
		}
	}
	switch {
	case t.session.Mode == "":
		return "no mode", nil
	case mode == "":
		return t.session.Mode, nil
	}
	return "from the next message on: " + t.session.Mode, nil
}

func (t *turn) steer(ctx context.Context, words string) (string, error) {
	if words == "" {
		return "", operation.InvalidField("line", "Give the agent a message: /steer TEXT")
	}
	said, err := operations.Steer.Call(ctx, t.to, t.by, operations.SteerMessage{ID: t.session.ID, Message: words, Mode: chat.Interrupt})
	if said.AsPrompt {
		return "nothing is running, so it was sent as a message", err
	}
	return "the run is interrupted with this message", err
}

func (t *turn) stop(ctx context.Context, what string) (string, error) {
	if t.planned != nil {
		return "nothing is running", nil
	}
	done, err := operations.Abort.Call(ctx, t.to, t.by, operations.AbortRequest{ID: t.session.ID, All: strings.EqualFold(what, "all")})
	if err == nil && !done.Aborted {
		return "nothing is running", nil
	}
	return "stopped", err
}

func (t *turn) clear(ctx context.Context, _ string) (string, error) {
	if t.planned != nil {
		return "nothing was said yet", nil
	}
	done, err := operations.ClearSession.Call(ctx, t.to, t.by, operations.SessionRef{ID: t.session.ID})
	return fmt.Sprintf("the agent no longer sees %d messages; the journal keeps them", done.Messages), err
}

func (t *turn) listSkills(ctx context.Context, _ string) (string, error) {
	list, err := t.skills(ctx)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, one := range list {
		fmt.Fprintf(&b, "- `/%s` %s\n", one.Name, one.Description)
	}
	if len(list) == 0 {
		return "No skills are on here; `/skill list` also shows those that need approval.", nil
	}
	return strings.TrimRight(b.String(), "\n"), nil
}
