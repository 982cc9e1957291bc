// Package delegate lets an agent use other agents: give them work, tell them something, read their documents.
//
// The two tools that begin another thread are declared here but carried out by the run's
// setup, so that the start is written in the same transaction as the call.
package delegate

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"chorus/internal/tool"
)

//go:embed spawn_agent.md
var spawnProse string

//go:embed send_to_agent.md
var sendProse string

//go:embed read_agent_docs.md
var docsProse string

//go:embed list_agents.md
var listProse string

// The names of the tools.
const (
	SpawnName = "spawn_agent"
	SendName  = "send_to_agent"
)

// Agent is an agent that can be asked.
type Agent struct {
	Name        string
	Model       string
	Description string
}

// Document is a document that an agent is given to read.
type Document struct {
	Name string
	Text string
}

// Agents are the agents of the home. A mistake that the model can correct is a tool.Mistake.
type Agents interface {
	ListAgents(ctx context.Context) ([]Agent, error)
	AgentDocs(ctx context.Context, name string) ([]Document, error)
}

// Task is what an agent is asked to do.
type Task struct {
	Agent     string   `json:"agent,omitempty" jsonschema:"who does it; left out: a copy of yourself"`
	Task      string   `json:"task" jsonschema:"what is to be done, with everything that must be known for it"`
	Model     string   `json:"model,omitempty" jsonschema:"which model; left out: the agent's own"`
	Tools     []string `json:"tools,omitempty" jsonschema:"the only tools it gets; left out: all of the agent's"`
	MaxSteps  int      `json:"max_steps,omitempty" jsonschema:"how many answers it may take"`
	BudgetUSD float64  `json:"budget_usd,omitempty" jsonschema:"what it may spend at most, in dollars"`
}

// Message is what an agent is told.
type Message struct {
	Target  string `json:"target_agent" jsonschema:"who is told"`
	Message string `json:"message" jsonschema:"what"`
}

type docsIn struct {
	Target string `json:"target_agent" jsonschema:"whose"`
}

type none struct{}

// errNotHere means that a call reached the tool instead of the run's setup.
var errNotHere = errors.New("this call is carried out where the run is set up")

// Tools returns the four tools. self is the agent that has them.
func Tools(all Agents, self string) []tool.Tool {
	return []tool.Tool{
		tool.New(tool.Func[Task]{Name: SpawnName, Description: spawnProse, Rare: true, Risk: tool.Medium, Deferred: true,
			Access: func(in Task) []tool.Access { return []tool.Access{{Tool: SpawnName, Detail: orSelf(in.Agent, self)}} },
			Label:  func(in Task) string { return orSelf(in.Agent, "a copy of itself") + ": " + firstLine(in.Task) },
			Run:    func(context.Context, Task) (tool.Result, error) { return tool.Result{}, errNotHere }}),
		tool.New(tool.Func[Message]{Name: SendName, Description: sendProse, Rare: true, Risk: tool.Medium, Deferred: true,
			Access: func(in Message) []tool.Access { return []tool.Access{{Tool: SendName, Detail: in.Target}} },
			Label:  func(in Message) string { return "tell agent " + in.Target + ": " + firstLine(in.Message) },
			Run:    func(context.Context, Message) (tool.Result, error) { return tool.Result{}, errNotHere }}),
		tool.New(tool.Func[none]{Name: "list_agents", Description: listProse, Rare: true, ReadOnly: true,
			Access: func(none) []tool.Access { return []tool.Access{{Tool: "list_agents"}} },
			Label:  func(none) string { return "list agents" },
			Run: func(ctx context.Context, _ none) (tool.Result, error) {
				list, err := all.ListAgents(ctx)
				if err != nil {
					return tool.Fail(err.Error()), ctx.Err()
				}
				return tool.OK(tool.Clip(ctx, lines(list), tool.Head, nil)), nil
			}}),
		tool.New(tool.Func[docsIn]{Name: "read_agent_docs", Description: docsProse, Rare: true, ReadOnly: true,
			Access: func(in docsIn) []tool.Access { return []tool.Access{{Tool: "read_agent_docs", Detail: in.Target}} },
			Label:  func(in docsIn) string { return "read the docs of agent " + in.Target },
			Run: func(ctx context.Context, in docsIn) (tool.Result, error) {
				docs, err := all.AgentDocs(ctx, in.Target)
				if err != nil {
					return tool.Fail(err.Error()), ctx.Err()
				}
				if len(docs) == 0 {
					return tool.OK("Agent " + in.Target + " has no docs."), nil
				}
				var b strings.Builder
				for _, d := range docs {
					fmt.Fprintf(&b, "# %s\n\n%s\n\n", d.Name, d.Text)
				}
				return tool.From("docs of agent "+in.Target, tool.Clip(ctx, b.String(), tool.Head, nil)), nil
			}}),
	}
}

func orSelf(name, self string) string {
	return cmp.Or(name, self)
}

func lines(list []Agent) string {
	if len(list) == 0 {
		return "There are no agents."
	}
	var b strings.Builder
	for _, a := range list {
		fmt.Fprintf(&b, "- %s (%s)", a.Name, a.Model)
		if a.Description != "" {
			b.WriteString(": " + a.Description)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Description returns what an agent is for: the first line of prose in
// its README, after headings, lists and quotes.
func Description(readme string) string {
	for line := range strings.Lines(readme) {
		line = strings.TrimSpace(line)
		if line == "" || strings.ContainsAny(line[:1], "#*>-=") {
			continue
		}
		if r := []rune(line); len(r) > maxDescription {
			return string(r[:maxDescription-3]) + "..."
		}
		return line
	}
	return ""
}

const maxDescription = 200

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	if r := []rune(s); len(r) > 80 {
		s = string(r[:79]) + "…"
	}
	return s
}

// Limits of a task, and the errors for exceeding them.
const (
	maxWords    = 100_000
	maxSteps    = 200
	noSuchWords = "say what is to be done"
)

// Read parses a call of either tool as a task. told reports that nobody waits for its answer.
func Read(name string, args []byte, self string) (t Task, told bool, err error) {
	if name == SendName {
		var m Message
		if err := json.Unmarshal(args, &m); err != nil {
			return t, false, tool.Mistake(err.Error())
		}
		if m.Target == self {
			return t, false, tool.Mistake("that is you: an agent cannot send itself a message. Do it yourself, or use spawn_agent")
		}
		t, told = Task{Agent: m.Target, Task: m.Message}, true
	} else if err := json.Unmarshal(args, &t); err != nil {
		return t, false, tool.Mistake(err.Error())
	}
	t.Agent = orSelf(t.Agent, self)
	switch {
	case strings.TrimSpace(t.Task) == "":
		return t, false, tool.Mistake(noSuchWords)
	case len(t.Task) > maxWords:
		return t, false, tool.Mistake(fmt.Sprintf("a task may have %d bytes; write the rest to a file and name it", maxWords))
	case t.MaxSteps < 0 || t.MaxSteps > maxSteps:
		return t, false, tool.Mistake(fmt.Sprintf("max_steps is at most %d", maxSteps))
	case t.BudgetUSD < 0:
		return t, false, tool.Mistake("budget_usd cannot be negative")
	}
	return t, told, nil
}
