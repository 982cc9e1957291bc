package runsetup

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"chorus/internal/agent"
	"chorus/internal/agent/toolcall"
	"chorus/internal/agents"
	"chorus/internal/chat"
	"chorus/internal/engine"
	"chorus/internal/id"
	"chorus/internal/journal"
	"chorus/internal/ledger"
	"chorus/internal/settings"
	"chorus/internal/suggest"
	"chorus/internal/tool"
	"chorus/internal/tool/delegate"
	"chorus/internal/transcript"
)

// otherAgents are the agents that one thread's agent may use.
type otherAgents struct {
	setup  *Setup
	thread chat.ThreadID
}

// ListAgents implements delegate.Agents.
func (o otherAgents) ListAgents(ctx context.Context) ([]delegate.Agent, error) {
	list, err := o.visible(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]delegate.Agent, 0, len(list)+1)
	if !slices.ContainsFunc(list, func(a agents.Agent) bool { return a.Name == chat.DefaultAgent }) {
		out = append(out, delegate.Agent{Name: chat.DefaultAgent, Model: o.setup.Shared.ContinuationModel, Description: "answers if no agent is named"})
	}
	for _, a := range list {
		readme, _ := ReadText(filepath.Join(o.setup.Home.AgentDir(a.Name), "docs", "README.md"))
		text := o.setup.Logs.Redactor().Text(delegate.Description(readme))
		out = append(out, delegate.Agent{Name: a.Name, Model: cmp.Or(a.Model, o.setup.Shared.ContinuationModel), Description: text})
	}
	return out, nil
}

// AgentDocs implements delegate.Agents.
func (o otherAgents) AgentDocs(ctx context.Context, name string) ([]delegate.Document, error) {
	if err := o.known(ctx, name); err != nil {
		return nil, err
	}
	var out []delegate.Document
	for _, d := range Docs(filepath.Join(o.setup.Home.AgentDir(name), "docs")) {
		out = append(out, delegate.Document{Name: d.Name, Text: o.setup.Logs.Redactor().Text(d.Text)})
	}
	return out, nil
}

// visible returns the agents that can be seen from the thread's place: on a platform's
// server, those of that server and those of the whole installation.
func (o otherAgents) visible(ctx context.Context) ([]agents.Agent, error) {
	list, err := o.setup.Settings.Agents().List(ctx)
	if err != nil {
		return nil, err
	}
	if !o.thread.OnPlatform() {
		return list, nil
	}
	return slices.DeleteFunc(list, func(a agents.Agent) bool {
		var guild string
		if err := json.Unmarshal(a.Extra["guildId"], &guild); len(a.Extra["guildId"]) > 0 && err != nil {
			return true
		}
		return guild != "" && guild != settings.GuildOf(o.thread)
	}), nil
}

// known returns what is wrong with an agent's name, for the model to read, or nil.
func (o otherAgents) known(ctx context.Context, name string) error {
	if name == o.thread.Agent() || name == chat.DefaultAgent {
		return nil
	}
	list, err := o.visible(ctx)
	if err != nil {
		return err
	}
	var names []string
	for _, a := range list {
		if a.Name == name {
			return nil
		}
		names = append(names, a.Name)
	}
	text := fmt.Sprintf("there is no agent %.40q", name)
	if near := suggest.Best(name, names); near != "" {
		text += "; did you mean " + near + "?"
	} else if len(names) > 0 {
		text += "; there are " + strings.Join(names[:min(len(names), 20)], ", ")
	}
	return tool.Mistake(text)
}

// deferral begins the thread in which another agent works on a call. It has the same place and folder, acts
// for everybody whose words this run has taken, and its terms are no wider than this run's.
func (s *Setup) deferral(ctx context.Context, row journal.Thread, call toolcall.Call, run *transcript.Run) (agent.Deferral, error) {
	task, told, err := delegate.Read(call.Tool.Spec().Name, call.Args, row.Agent)
	if err != nil {
		return agent.Deferral{}, err
	}
	if err := (otherAgents{s, row.ID}).known(ctx, task.Agent); err != nil {
		return agent.Deferral{}, err
	}
	if err := s.mayGoDeeper(ctx, row); err != nil {
		return agent.Deferral{}, err
	}
	terms, err := s.childTerms(row, run, task)
	if err != nil {
		return agent.Deferral{}, err
	}
	child, err := chat.NewThreadID(row.ID.Transport(), row.ID.Place(), id.New(), task.Agent)
	if err != nil {
		return agent.Deferral{}, err
	}
	parent := journal.Parent{Thread: row.ID, Run: run.ID, Call: call.Use.ID, Root: cmp.Or(row.Parent.Root, run.ID)}
	words := task.Task
	out := agent.Deferral{Thread: child}
	if told {
		parent.Call, words = "", fmt.Sprintf("Message from agent '%s': %s", row.Agent, task.Task)
		result, err := json.Marshal(map[string]any{"delivered": true, "target": task.Agent})
		if err != nil {
			return agent.Deferral{}, err
		}
		out.Result = chat.TextBlocks(string(result))
	}
	by := chat.Acting(chat.OtherAgent, row.Agent, call.Senders)
	out.Begin = journal.Commit{Thread: child, Create: &journal.Thread{ID: child, Agent: task.Agent, Owner: row.Owner, Dir: row.Dir, Parent: parent},
		Events: []chat.Event{{Thread: child, Who: by.String(), Platform: "agent", PlatformID: run.ID + "/" + call.Use.ID,
			Body: chat.Received{From: chat.Participant{ID: row.Agent, Name: row.Agent, Kind: chat.Agent}, Principal: by, Prompt: true,
				Intake: chat.Queue, Blocks: chat.TextBlocks(words), Terms: terms}}}}
	return out, nil
}

// childTerms returns the terms of a child's run: the run's own, narrowed by the task.
func (s *Setup) childTerms(row journal.Thread, run *transcript.Run, task delegate.Task) (chat.Terms, error) {
	t := run.Terms
	for _, sender := range run.Senders {
		t.Yes = t.Yes && sender.Terms.Yes
	}
	if task.Agent != row.Agent {
		t.Model = ""
	}
	if task.Model != "" {
		name, err := s.Models.Name("", task.Model)
		if err != nil {
			return t, tool.Mistake(err.Error())
		}
		t.Model = name
	}
	t.MaxSteps = task.MaxSteps
	t.Tools = strings.Join(narrowed(t.Tools, task.Tools), ",")
	t.Above, t.MaxCost = ledger.Below(run.ID, t), ledger.FromUSD(task.BudgetUSD)
	return t, nil
}

// narrowed returns the tools that a child gets if its parent has only some itself.
func narrowed(have string, want []string) []string {
	if have == "" {
		return want
	}
	mine := strings.Split(have, ",")
	if len(want) == 0 {
		return mine
	}
	both := slices.DeleteFunc(slices.Clone(want), func(name string) bool { return !slices.Contains(mine, name) })
	if len(both) == 0 {
		return []string{"none"} // an empty list would mean all tools
	}
	return both
}

// mayGoDeeper checks how many agents are above this thread.
func (s *Setup) mayGoDeeper(ctx context.Context, row journal.Thread) error {
	for depth := 1; row.Parent.Thread != ""; depth++ {
		if depth >= engine.MaxDepth {
			return tool.Mistake(fmt.Sprintf("agents may delegate at most %d levels deep, and you are at the last one: do it yourself", engine.MaxDepth))
		}
		above, err := s.DB.Thread(ctx, row.Parent.Thread)
		if errors.Is(err, journal.ErrUnknown) {
			return nil
		}
		if err != nil {
			return err
		}
		row = above
	}
	return nil
}
