package agents

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"chorus/internal/agents"
	"chorus/internal/chat"
	"chorus/internal/id"
	"chorus/internal/model"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/runsetup"
	"chorus/internal/tool/files"
)

// wishes are the requested settings, by their names in agent.json. Line endings are normalized.
func wishes(modelName, permissions, prompt, tools *string) map[string]string {
	out := map[string]string{}
	for key, value := range map[string]*string{"model": modelName, "permissions": permissions, "systemPrompt": prompt, "tools": tools} {
		if value != nil {
			out[key] = strings.TrimSpace(strings.ReplaceAll(*value, "\r\n", "\n")) // forms send these
		}
	}
	return out
}

// EditAgent implements the operation of that name.
func (o *Handler) EditAgent(ctx context.Context, by operation.Caller, in operations.AgentEdit) (operations.Agent, error) {
	a, err := o.FindAgent(ctx, in.Name)
	if err != nil {
		return operations.Agent{}, err
	}
	values := wishes(in.Model, in.Permissions, in.SystemPrompt, in.Tools)
	if len(values) == 0 {
		return operations.Agent{}, operation.Errorf(operation.Invalid, "there is nothing to change; give a model, permissions, a prompt or tools")
	}
	if err := o.checkWishes(values); err != nil {
		return operations.Agent{}, err
	}
	if p := values["permissions"]; p != "" && p != a.Permissions {
		if err := o.app.Gate.MayGive(p, by.Principal); err != nil {
			return operations.Agent{}, operation.Errorf(operation.Forbidden, "%w", err)
		}
	}
	changed, err := o.app.Settings.Agents().Edit(ctx, in.Name, in.Seen, values)
	switch {
	case errors.Is(err, agents.ErrMoved):
		return operations.Agent{}, o.agentMoved(ctx, in.Name, values)
	case err != nil:
		return operations.Agent{}, operation.Errorf(operation.Invalid, "%w", err)
	}
	return o.agentFor(by, changed), o.sessions.Record(ctx, by, changed.Name, "agent edit", strings.Join(slices.Sorted(maps.Keys(values)), ", "))
}

// checkWishes checks requested settings before anything changes, and expands a model's name.
func (o *Handler) checkWishes(values map[string]string) error {
	wished := agents.Agent{Model: values["model"], Permissions: values["permissions"]}
	if err := o.checkAgent(&wished); err != nil {
		return err
	}
	if wished.Model != "" {
		values["model"] = wished.Model
	}
	if p, ok := values["permissions"]; ok && p == "" {
		return operation.InvalidField("permissions", "name a permission profile, such as standard")
	}
	return nil
}

// agentMoved is the answer to an edit of an outdated version: the current version, and the difference to the request.
func (o *Handler) agentMoved(ctx context.Context, name string, values map[string]string) error {
	now, err := o.FindAgent(ctx, name)
	if err != nil {
		return err
	}
	wished, err := o.app.Settings.Agents().Draft(now, values)
	if err != nil {
		return operation.Errorf(operation.Invalid, "%w", err)
	}
	moved := operation.Errorf(operation.Conflict, "somebody else has changed %s meanwhile, so nothing was saved; check the difference, then save again with the new version", name)
	moved.About = operations.AgentConflict{Version: o.app.Settings.Agents().Version(now),
		Difference: o.app.Logs.Redactor().Text(files.UnifiedWhole(name, editText(now), editText(wished)))}
	return moved
}

// editText formats the editable parts of an agent as a text with readable diffs.
func editText(a agents.Agent) string {
	return "model: " + cmp.Or(a.Model, "the default") + "\npermissions: " + cmp.Or(a.Permissions, "standard") + "\ntools: " + cmp.Or(strings.Join(a.Tools, ", "), "all") + "\n\n" + a.SystemPrompt + "\n"
}

// PreviewAgent implements the operation of that name.
func (o *Handler) PreviewAgent(ctx context.Context, by operation.Caller, in operations.AgentDraft) (operations.AgentPreview, error) {
	a, err := o.FindAgent(ctx, in.Name)
	if operation.KindOf(err) == operation.NotFound && chat.ValidAgentName(in.Name) {
		a, err = agents.Agent{Name: in.Name}, nil
	}
	if err != nil {
		return operations.AgentPreview{}, err
	}
	values := wishes(in.Model, in.Permissions, in.SystemPrompt, in.Tools)
	if values["permissions"] == "" {
		delete(values, "permissions")
	}
	if err := o.checkWishes(values); err != nil {
		return operations.AgentPreview{}, err
	}
	if a, err = o.app.Settings.Agents().Draft(a, values); err != nil {
		return operations.AgentPreview{}, operation.Errorf(operation.Invalid, "%w", err)
	}
	thread, err := chat.NewThreadID("web", by.Principal.OwnPlace(), "preview-"+id.New(), a.Name)
	if err != nil {
		return operations.AgentPreview{}, err
	}
	dir, err := o.sessions.Workplace(by, operations.NewSession{Agent: a.Name}, thread)
	if err != nil {
		return operations.AgentPreview{}, err
	}
	seen, err := o.app.Setup.Preview(ctx, runsetup.PreviewRequest{Thread: thread, Dir: dir, By: by.Principal, Agent: a})
	if err != nil {
		return operations.AgentPreview{}, err
	}
	return o.previewed(a, seen), nil
}

// previewed makes a preview for people: without secrets, and with sizes.
func (o *Handler) previewed(a agents.Agent, seen runsetup.Preview) operations.AgentPreview {
	hide := o.app.Logs.Redactor()
	out := operations.AgentPreview{Name: a.Name, Model: seen.Model, ContextWindow: seen.ContextWindow, Permissions: seen.Profile, Worker: a.Worker, System: hide.Text(seen.Head.System),
		Tools: []operations.PreviewTool{}, Searched: nonNil(seen.Searched), Refused: nonNil(seen.Refused), Servers: nonNil(seen.Servers), Notes: []operations.PreviewNote{}}
	out.Tokens.System = model.Tokens(len(seen.Head.System))
	for _, t := range seen.Tools {
		n := model.Tokens(len(t.Name) + len(t.Description) + len(t.Schema))
		out.Tools = append(out.Tools, operations.PreviewTool{Name: t.Name, Description: hide.Text(t.Description), ReadOnly: t.ReadOnly, Tokens: n})
		out.Tokens.Tools += n
	}
	for _, note := range seen.Notes {
		n := model.Tokens(len(note.Text))
		out.Notes = append(out.Notes, operations.PreviewNote{What: note.What, Text: hide.Text(note.Text), Tokens: n})
		out.Tokens.Notes += n
	}
	out.Tokens.Total = out.Tokens.System + out.Tokens.Tools + out.Tokens.Notes
	return out
}

func nonNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
