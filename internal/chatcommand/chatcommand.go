// Package chatcommand runs the slash commands that people type in a conversation that a server holds: on its page, in a
// terminal connected to the server, or over the API.
//
// It promises that a command runs with the rights of whoever typed it, limited by their token, on the conversation it
// was typed in; that nothing is destroyed before the same person has confirmed it; and that a line that calls a skill or
// begins with a path, and is no command, reaches the agent unchanged.
package chatcommand

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"chorus/internal/chat"
	"chorus/internal/connector/slash"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/platform"
	"chorus/internal/room"
	"chorus/internal/suggest"
)

// Handler implements operations.Commands with the operations behind the commands.
type Handler struct {
	open  func() (*commands, error)
	files FilesOf
}

// FilesOf finds files in the folder that a new conversation would get, by letters of their names, up to a limit.
type FilesOf func(ctx context.Context, by operation.Caller, in operations.NewSession, match string, most int) ([]string, error)

var _ operations.Commands = (*Handler)(nil)

// commands is what the handler works with. It is created with the first command, because operations can only be called
// once everything is wired.
type commands struct {
	to   operation.Executor
	set  *slash.Set
	list []platform.Command
}

// New returns a handler for the operations of a server. It first uses them with the first command.
func New[E operation.Executor](executor func() E, files FilesOf) *Handler {
	return &Handler{files: files, open: sync.OnceValues(func() (*commands, error) {
		c := &commands{to: executor()}
		var err error
		if c.set, err = slash.New(slash.Options{Executor: c.to, Operations: operations.All(), Groups: operations.Groups()}); err != nil {
			return nil, err
		}
		c.list = append(Builtin(), c.set.List()...)
		return c, nil
	})}
}

// turn is a line that somebody typed, and where they typed it.
type turn struct {
	*commands
	by      operation.Caller
	session operations.Session
	line    string
	planned *operations.NewSession // what the session will be; nil: it exists
}

func (h *Handler) begin(ctx context.Context, by operation.Caller, id, line string) (*turn, error) {
	c, err := h.open()
	if err != nil {
		return nil, err
	}
	session, err := operations.GetSession.Call(ctx, c.to, by, operations.SessionRef{ID: id})
	if err != nil {
		return nil, err
	}
	if thread, err := chat.ParseThreadID(session.Thread); err == nil {
		by.Session = thread
		if by.May(operation.Admin) { // others type only where their own conversations are held, which an empty place means
			by.Here = thread.Transport() + ":" + thread.Place()
		}
	}
	return &turn{commands: c, by: by, session: session, line: strings.TrimSpace(line)}, nil
}

// surroundings returns who typed the line and the values for fields that were left out.
func (t *turn) surroundings() slash.Surroundings {
	return slash.Surroundings{
		Caller: func(room.Author, room.Channel, bool) operation.Caller { return t.by },
		Context: func(_ context.Context, _ platform.Invocation, what string) string {
			return map[string]string{"memory": "channel", "session": t.session.ID, "running": t.session.ID, "agent": t.session.Agent}[what]
		},
		Refused: func(d *operation.Definition) string {
			return fmt.Sprintf("This needs a token with the scope %s.", d.Scope)
		},
	}
}

// RunCommand implements operations.Commands.
func (h *Handler) RunCommand(ctx context.Context, by operation.Caller, in operations.CommandLine) (operations.CommandAnswer, error) {
	t, err := h.begin(ctx, by, in.ID, in.Line)
	if err != nil {
		return operations.CommandAnswer{}, err
	}
	words, isCommand := strings.CutPrefix(t.line, "/")
	name, rest := cut(words)
	if !isCommand || strings.ContainsAny(name, "/:") { // a path, or a prompt of an MCP server
		return t.say(ctx, t.line)
	}
	if says, err := t.callsSkill(ctx, name, rest); err != nil || says {
		if err != nil {
			return operations.CommandAnswer{}, err
		}
		return t.say(ctx, t.line)
	}
	if !t.knows(name) {
		return operations.CommandAnswer{}, operation.InvalidField("line", "%s", unknown(name, t.list))
	}
	if answer, ok, err := t.builtin(ctx, strings.ToLower(name), rest); ok || err != nil {
		return answer, err
	}
	answer, _ := t.set.As(t.surroundings()).Line(ctx, platform.Invocation{Allowed: platform.Allowed{Write: true}}, "/"+strings.ToLower(name)+" "+rest)
	switch {
	case answer.Say != "":
		return t.say(ctx, answer.Say)
	case answer.Asks != "":
		return operations.CommandAnswer{Text: answer.Asks, Confirm: t.line + " " + slash.Confirms}, nil
	case answer.File.Name != "":
		return operations.CommandAnswer{Text: answer.Text + "\n```\n" + answer.File.Text + "\n```"}, nil
	}
	return operations.CommandAnswer{Text: answer.Text}, nil
}

// RunFirst implements operations.Commands. Commands that would leave something behind, or read what was, need the session.
func (h *Handler) RunFirst(ctx context.Context, by operation.Caller, in operations.FirstCommand) (operations.FirstAnswer, error) {
	c, err := h.open()
	if err != nil {
		return operations.FirstAnswer{}, err
	}
	session, err := operations.PreviewSession.Call(ctx, c.to, by, in.NewSession)
	if err != nil {
		return operations.FirstAnswer{}, err
	}
	t := &turn{commands: c, by: by, session: session, line: strings.TrimSpace(in.Line), planned: &in.NewSession}
	words, isCommand := strings.CutPrefix(t.line, "/")
	name, rest := cut(words)
	name = strings.ToLower(name)
	if !isCommand || !slices.Contains(beforehand(), name) {
		return operations.FirstAnswer{Begin: true, Session: session}, nil
	}
	answer, _, err := t.builtin(ctx, name, rest)
	return operations.FirstAnswer{Text: answer.Text, Session: t.session}, err
}

// cut splits off the first word.
func cut(words string) (first, rest string) {
	fields := strings.Fields(words)
	if len(fields) == 0 {
		return "", ""
	}
	return fields[0], strings.TrimSpace(strings.TrimPrefix(words, fields[0]))
}

func (t *turn) knows(name string) bool {
	return slices.ContainsFunc(t.list, func(c platform.Command) bool { return strings.EqualFold(c.Name, name) })
}

// unknown returns the message for a command that does not exist.
func unknown(name string, list []platform.Command) string {
	var names []string
	for _, c := range list {
		names = append(names, c.Name)
	}
	if near := suggest.Best(strings.ToLower(name), names); near != "" {
		return "There is no command /" + name + "; did you mean /" + near + "?"
	}
	return "There is no command /" + name + "; /help lists them. To send the text to the agent, start with something other than a slash."
}

// say sends text to the agent.
func (t *turn) say(ctx context.Context, words string) (operations.CommandAnswer, error) {
	_, err := operations.Say.Call(ctx, t.to, t.by, operations.Message{ID: t.session.ID, Message: words})
	return operations.CommandAnswer{Said: err == nil}, err
}

// callsSkill reports whether a line calls a skill by its name: /deploy staging, or /skill deploy staging.
func (t *turn) callsSkill(ctx context.Context, name, rest string) (bool, error) {
	switch {
	case name == "skill":
		name, _ = cut(rest)
		if c, _, _ := slash.Find(t.list, "skill "+name); name == "" || c != nil {
			return false, nil
		}
	case t.knows(name):
		return false, nil
	}
	list, err := t.skills(ctx)
	return slices.ContainsFunc(list, func(one operations.Skill) bool { return one.Name == name }), err
}

// skills returns the skills that can be called in the session.
func (t *turn) skills(ctx context.Context) ([]operations.Skill, error) {
	place := operations.SkillPlace{Session: t.session.ID}
	if t.session.ID == "" { // it does not exist yet
		place = operations.SkillPlace{Workspace: t.session.WorkspacePath, Agent: t.session.Agent}
	}
	list, err := operations.ListSkills.Call(ctx, t.to, t.by, operations.SkillQuery{SkillPlace: place, Status: "on"})
	return list.Items, err
}

// maxSuggestions limits the suggestions; nobody reads more.
const maxSuggestions = 25

// maxFiles limits the files that are suggested.
const maxFiles = 12

// CompleteCommand implements operations.Commands.
func (h *Handler) CompleteCommand(ctx context.Context, by operation.Caller, in operations.CommandStart) (operation.List[operations.Completion], error) {
	t, err := h.begin(ctx, by, in.ID, in.Line)
	if err != nil {
		return operation.List[operations.Completion]{Items: []operations.Completion{}}, err
	}
	return t.complete(ctx, in.Line, t.files)
}

// CompleteFirst implements operations.Commands.
func (h *Handler) CompleteFirst(ctx context.Context, by operation.Caller, in operations.FirstLineStart) (operation.List[operations.Completion], error) {
	c, err := h.open()
	if err != nil {
		return operation.List[operations.Completion]{Items: []operations.Completion{}}, err
	}
	t := &turn{commands: c, by: by, session: operations.Session{Agent: cmp.Or(in.Agent, chat.DefaultAgent), WorkspacePath: in.WorkspacePath, Model: in.Model}, line: strings.TrimSpace(in.Line)}
	return t.complete(ctx, in.Line, func(ctx context.Context, name string) ([]operations.Completion, error) {
		found, err := h.files(ctx, by, operations.NewSession{Agent: in.Agent, WorkspacePath: in.WorkspacePath}, name, maxFiles)
		return named(found), err
	})
}

// complete suggests how a line can continue. files finds files.
func (t *turn) complete(ctx context.Context, line string, files func(ctx context.Context, name string) ([]operations.Completion, error)) (out operation.List[operations.Completion], err error) {
	out.Items = []operations.Completion{}
	if name, isFile := strings.CutPrefix(line, "@"); isFile {
		out.Items, err = files(ctx, name)
		return out, err
	}
	start := cmp.Or(strings.TrimLeft(line, " "), "/")
	found, at := slash.Suggest(t.list, start)
	if at != nil && at.Option.Completes {
		found = append(t.values(ctx, *at), found...)
	}
	if name, isName := strings.CutPrefix(line, "/"); isName && !strings.Contains(name, " ") {
		list, err := t.skills(ctx)
		if err != nil {
			return out, err
		}
		for _, one := range list {
			if strings.HasPrefix(one.Name, name) && !t.knows(one.Name) {
				found = append(found, slash.Suggestion{Line: "/" + one.Name + " ", Label: "/" + one.Name, About: one.Description})
			}
		}
	}
	if strings.HasPrefix(line, "/") && strings.Contains(line, ":") && !strings.ContainsAny(line, " \n") {
		found = append(found, t.promptNames(ctx, line)...)
	}
	if line != "" {
		found = found[:min(len(found), maxSuggestions)]
	}
	for _, s := range found {
		out.Items = append(out.Items, operations.Completion(s))
	}
	return out, nil
}

// files finds files in the conversation's folder that match a name.
func (t *turn) files(ctx context.Context, name string) ([]operations.Completion, error) {
	list, err := operations.SessionFiles.Call(ctx, t.to, t.by, operations.SessionFileQuery{ID: t.session.ID, Match: name, Limit: maxFiles})
	var found []string
	for _, f := range list.Items {
		found = append(found, f.Path)
	}
	return named(found), err
}

// named turns file names into completions.
func named(paths []string) []operations.Completion {
	out := []operations.Completion{}
	for _, path := range paths {
		out = append(out, operations.Completion{Line: "@" + path + " ", Label: path})
	}
	return out
}

// values returns the possible values of an option that the person may see.
func (t *turn) values(ctx context.Context, at slash.Typing) (out []slash.Suggestion) {
	choices, ok := t.set.As(t.surroundings()).Complete(ctx, platform.Invocation{Path: at.Path, Text: map[string]string{at.Option.Name: at.Typed}}, at.Option.Name)
	switch {
	case !ok && at.Path == "model":
		return Models(ctx, t.to, t.by, at, modelOf(t.session))
	case !ok && at.Path == "notes":
		choices = t.noteKeys(ctx, at.Typed)
	}
	for _, c := range choices {
		out = append(out, slash.Suggestion{Line: at.With(c.Value), Label: c.Label})
	}
	return out
}

// Models lists the available models with their prices. The current one comes first and says so.
func Models(ctx context.Context, to operation.Executor, by operation.Caller, at slash.Typing, now string) (out []slash.Suggestion) {
	list, err := operations.ListModels.Call(ctx, to, by, operation.None{})
	if err != nil {
		return nil
	}
	for _, m := range list.Items {
		if !m.Ready || !strings.Contains(strings.ToLower(m.Name), strings.ToLower(at.Typed)) {
			continue
		}
		about := m.Words()
		if m.Name == now {
			about = strings.TrimSuffix("now · "+about, " · ")
		}
		out = append(out, slash.Suggestion{Line: at.With(m.Name), Label: m.Name, About: about})
	}
	return out
}
