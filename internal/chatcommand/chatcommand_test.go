package chatcommand_test

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/chatcommand"
	"chorus/internal/operation"
	"chorus/internal/operations"
)

// server is one with a session, a memory file and a skill. It notes what was asked of it.
type server struct {
	operations.Sessions
	operations.Memory
	operations.Skills
	operations.SessionWork
	notes   []operations.SessionNote
	changed string
	session operations.Session
	said    []string
	here    string
	gone    int
}

func (s *server) GetSession(context.Context, operation.Caller, operations.SessionRef) (operations.Session, error) {
	return s.session, nil
}

func (s *server) ChangeSession(_ context.Context, _ operation.Caller, in operations.SessionChange) (operations.Session, error) {
	if in.Mode == "bogus" {
		return s.session, operation.InvalidField("mode", "unknown mode")
	}
	s.session.Mode = strings.TrimSuffix(in.Mode, "off")
	return s.session, nil
}

func (s *server) PreviewSession(_ context.Context, _ operation.Caller, in operations.NewSession) (operations.Session, error) {
	if in.Mode == "bogus" {
		return operations.Session{}, operation.InvalidField("mode", "unknown mode")
	}
	return operations.Session{Agent: "helper", Provider: "demo", Model: cmp.Or(in.Model, "script"), Mode: in.Mode}, nil
}

func (s *server) Say(_ context.Context, _ operation.Caller, in operations.Message) (operations.Said, error) {
	s.said = append(s.said, in.Message)
	return operations.Said{}, nil
}

func (s *server) Abort(context.Context, operation.Caller, operations.AbortRequest) (operations.Aborted, error) {
	return operations.Aborted{}, nil
}

func (s *server) GetMemory(_ context.Context, by operation.Caller, in operations.MemoryRef) (operations.MemoryText, error) {
	s.here = by.Here
	return operations.MemoryText{MemoryFile: operations.MemoryFile{Path: in.Path}, Text: "- ships on Fridays"}, nil
}

func (s *server) ListMemory(context.Context, operation.Caller, operation.None) (operation.List[operations.MemoryFile], error) {
	return operation.List[operations.MemoryFile]{Items: []operations.MemoryFile{{Path: "MEMORY.md"}}}, nil
}

func (s *server) ForgetMemory(context.Context, operation.Caller, operations.MemoryForget) (operations.MemoryText, error) {
	s.gone++
	return operations.MemoryText{}, nil
}

func (s *server) ListSkills(context.Context, operation.Caller, operations.SkillQuery) (operation.List[operations.Skill], error) {
	return operation.List[operations.Skill]{Items: []operations.Skill{{Name: "deploy", Description: "Release the service"}}}, nil
}

func (s *server) GetSkill(context.Context, operation.Caller, operations.SkillRef) (operations.SkillDetail, error) {
	return operations.SkillDetail{}, nil
}

func (s *server) SessionDiff(context.Context, operation.Caller, operations.SessionRef) (operations.SessionChanges, error) {
	return operations.SessionChanges{Text: s.changed}, nil
}

func (s *server) SessionNotes(context.Context, operation.Caller, operations.SessionRef) (operation.List[operations.SessionNote], error) {
	return operation.List[operations.SessionNote]{Items: s.notes}, nil
}

func (s *server) SetSessionNote(_ context.Context, _ operation.Caller, in operations.SessionNoteText) (operations.SessionNote, error) {
	note := operations.SessionNote{Key: in.Key, Value: in.Value}
	s.notes = append(s.notes, note)
	return note, nil
}

func (s *server) ClearSessionNotes(_ context.Context, _ operation.Caller, in operations.SessionNoteRef) (operations.ClearedNotes, error) {
	n := len(s.notes)
	s.notes = slices.DeleteFunc(s.notes, func(note operations.SessionNote) bool { return in.Key == "" || note.Key == in.Key })
	return operations.ClearedNotes{Cleared: n - len(s.notes)}, nil
}

func (s *server) SessionPrompts(context.Context, operation.Caller, operations.SessionRef) (operation.List[operations.SessionPrompt], error) {
	return operation.List[operations.SessionPrompt]{Items: []operations.SessionPrompt{{Name: "/wiki:review", Usage: "/wiki:review FILE", About: "Reviews a file."}}}, nil
}

// filesOf has a file for those who begin in /work, and refuses other places.
func (s *server) filesOf(_ context.Context, _ operation.Caller, in operations.NewSession, match string, _ int) ([]string, error) {
	if in.WorkspacePath != "/work" {
		return nil, operation.Errorf(operation.Forbidden, "not there")
	}
	return []string{"src/" + match + ".go"}, nil
}

func start(t *testing.T) (*server, operation.Executor) {
	t.Helper()
	s := &server{session: operations.Session{ID: "one", Thread: "discord:12/34:one:helper", Agent: "helper", Provider: "demo", Model: "script"}}
	bare := func() *operation.Local {
		return operation.NewLocal(operation.LocalOptions{Handlers: []any{s}, Operations: operations.All()})
	}
	return s, operation.NewLocal(operation.LocalOptions{Handlers: []any{s, chatcommand.New(bare, s.filesOf)}, Operations: operations.All()})
}

func somebody(scopes ...operation.Scope) operation.Caller {
	return operation.Caller{Principal: chat.Principal{Kind: chat.TokenHolder, ID: "t1"}, Scopes: scopes}
}

func TestCommands(t *testing.T) {
	t.Parallel()
	s, to := start(t)
	s.changed = "a.go | 2 ++"
	for _, tt := range []struct {
		line string
		want string // in the answer or in the error
		said string
	}{
		{"/help", "`/memory` What agents remember", ""},
		{"/help memory show", "/memory show [PATH]", ""},
		{"/help nothing", "There is no command /nothing", ""},
		{"/status", "demo/script", ""},
		{"/STATUS", "demo/script", ""},
		{"/memory show", "- ships on Fridays", ""},
		{"/memory", "/memory show [PATH]", ""},
		{"/memory bogus", "there is no /memory bogus", ""},
		{"/memory edit", "/memory edit needs text", ""},
		{"/memroy", "did you mean /memory?", ""},
		{"/zzzzz", "/help lists them", ""},
		{"/mode", "no mode", ""},
		{"/mode review", "from the next message on: review", ""},
		{"/mode bogus", "unknown mode", ""},
		{"/mode off", "no mode", ""},
		{"/stop", "nothing is running", ""},
		{"/steer", "/steer TEXT", ""},
		{"/skill", "`/deploy` Release the service", ""},
		{"/deploy staging now", "", "/deploy staging now"},
		{"/skill deploy staging", "", "/skill deploy staging"},
		{"/skill run deploy staging", "", "/deploy staging"},
		{"/etc/hosts is wrong", "", "/etc/hosts is wrong"},
		{"/server:prompt word", "", "/server:prompt word"},
		{"/diff", "a.go | 2 ++", ""},
		{"/notes", "there are no notes", ""},
		{"/notes set plan first the tests,  then the code", "noted", ""},
		{"/notes get plan", "first the tests,  then the code", ""},
		{"/notes get other", "there is no note other", ""},
		{"/notes list", "plan: first the tests", ""},
		{"/notes set fence a ``` b", "noted", ""},
		{"/notes get fence", "````\na ``` b\n````", ""},
		{"/notes set plan", "/notes set KEY TEXT", ""},
		{"/notes bogus", "/notes set KEY TEXT", ""},
		{"/notes clear plan", "1 cleared", ""},
		{"/notes clear", "1 cleared", ""},
		{"/prompts", "/wiki:review FILE: Reviews a file.", ""},
		{"/token list", "There is no command /token", ""},
	} {
		s.said = nil
		got, err := operations.RunCommand.Call(t.Context(), to, somebody(operation.Chat), operations.CommandLine{ID: "one", Line: tt.line})
		text := got.Text
		if err != nil {
			text = err.Error()
		}
		if !strings.Contains(text, tt.want) || strings.Join(s.said, "|") != tt.said || got.Said != (tt.said != "") {
			t.Errorf("%s: %q (%v), said %q; want %q and %q", tt.line, text, err, s.said, tt.want, tt.said)
		}
	}
}

// Before there is a conversation, a command answers without it, changes what it will be, or needs it first.
func TestFirstCommand(t *testing.T) {
	t.Parallel()
	s, to := start(t)
	for _, tt := range []struct {
		line, mode  string // that was chosen before
		want        string // in the answer or in the error; "": the conversation is needed
		model, then string // what it would be after it
	}{
		{"/help mode", "", "/mode [MODE]", "script", ""},
		{"/status", "plan", "mode          plan", "script", "plan"},
		{"/model", "", "demo/script", "script", ""},
		{"/model other", "plan", "from the next message on: demo/other", "other", "plan"},
		{"/mode", "plan", "plan", "script", "plan"},
		{"/MODE review", "plan", "from the next message on: review", "script", "review"},
		{"/mode off", "plan", "no mode", "script", ""},
		{"/mode bogus", "plan", "unknown mode", "", ""},
		{"/why", "", "nothing has been answered", "script", ""},
		{"/clear", "", "nothing was said yet", "script", ""},
		{"/stop", "", "nothing is running", "script", ""},
		{"/notes set plan x", "plan", "", "script", "plan"},
		{"/memory show", "", "", "script", ""},
		{"/deploy staging", "", "", "script", ""},
		{"/zzzzz", "", "", "script", ""},
		{"words", "", "", "script", ""},
	} {
		got, err := operations.RunFirst.Call(t.Context(), to, somebody(operation.Chat), operations.FirstCommand{NewSession: operations.NewSession{Mode: tt.mode}, Line: tt.line})
		text := got.Text
		if err != nil {
			text = err.Error()
		}
		if !strings.Contains(text, tt.want) || got.Begin != (tt.want == "") || got.Session.Model != tt.model || got.Session.Mode != tt.then {
			t.Errorf("%s: %+v, %v", tt.line, got, err)
		}
	}
	if len(s.said) > 0 || len(s.notes) > 0 {
		t.Errorf("said %q, noted %v", s.said, s.notes)
	}
}

// What cannot be undone is asked first, and nobody else's yes counts.
func TestConfirmed(t *testing.T) {
	t.Parallel()
	s, to := start(t)
	run := func(by operation.Caller, line string) operations.CommandAnswer {
		t.Helper()
		got, err := operations.RunCommand.Call(t.Context(), to, by, operations.CommandLine{ID: "one", Line: line})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	me, other := somebody(operation.Chat), somebody(operation.Chat)
	other.Principal.ID = "t2"
	asked := run(me, "/memory forget words=ships")
	if asked.Confirm != "/memory forget words=ships --yes" || !strings.Contains(asked.Text, "Only the lines that contain: ships") || strings.Contains(asked.Text, "--yes") || s.gone != 0 {
		t.Fatalf("%+v, forgotten %d times", asked, s.gone)
	}
	if run(other, asked.Confirm); s.gone != 0 {
		t.Error("somebody else confirmed it")
	}
	if run(me, asked.Confirm); s.gone != 1 {
		t.Errorf("forgotten %d times", s.gone)
	}
	if again := run(me, asked.Confirm); s.gone != 1 || again.Confirm == "" {
		t.Errorf("one yes counted twice: %+v", again)
	}
}

// A command is about the place of the conversation for those who run the server. For others it is their own: the place would
// give them rights there.
func TestPlace(t *testing.T) {
	t.Parallel()
	for scope, want := range map[operation.Scope]string{operation.Admin: "discord:12/34", operation.Chat: ""} {
		s, to := start(t)
		if _, err := operations.RunCommand.Call(t.Context(), to, somebody(scope), operations.CommandLine{ID: "one", Line: "/memory show"}); err != nil || s.here != want {
			t.Errorf("%s: asked in %q (%v), want %q", scope, s.here, err, want)
		}
	}
	_, to := start(t)
	if _, err := operations.RunCommand.Call(t.Context(), to, somebody(operation.Read), operations.CommandLine{ID: "one", Line: "/memory show"}); operation.KindOf(err) != operation.Forbidden {
		t.Errorf("without the scope chat: %v", err)
	}
}

func TestComplete(t *testing.T) {
	t.Parallel()
	s, to := start(t)
	s.notes = []operations.SessionNote{{Key: "plan", Value: "first the tests"}}
	for line, want := range map[string]string{
		"/di":            "/diff ",
		"/notes g":       "/notes get ",
		"/notes get p":   "/notes get plan ",
		"/wiki:":         "/wiki:review ",
		"/wiki:x":        "",
		"/memory s":      "/memory show ",
		"/dep":           "/deploy ",
		"/memory show M": "/memory show MEMORY.md ",
		"/mode r":        "/mode review ",
		"/nothing ":      "",
		"words":          "",
	} {
		list, err := operations.CompleteCommand.Call(t.Context(), to, somebody(operation.Chat), operations.CommandStart{ID: "one", Line: line})
		got := ""
		if len(list.Items) > 0 {
			got = list.Items[0].Line
		}
		if err != nil || got != want {
			t.Errorf("%q goes on as %q (%v), want %q", line, got, err, want)
		}
	}
	all, err := operations.CompleteCommand.Call(t.Context(), to, somebody(operation.Chat), operations.CommandStart{ID: "one"})
	if err != nil || len(all.Items) < 10 {
		t.Errorf("%d commands, %v", len(all.Items), err)
	}
}

// Before there is a conversation, its first line is completed by what it would be able to do.
func TestFirstLine(t *testing.T) {
	t.Parallel()
	_, to := start(t)
	by := somebody(operation.Read, operation.Chat)
	for typed, want := range map[string]string{"/mod": "/model", "/dep": "/deploy", "@mai": "src/mai.go"} {
		list, err := operations.CompleteFirst.Call(t.Context(), to, by, operations.FirstLineStart{Line: typed, Agent: "helper", WorkspacePath: "/work"})
		if err != nil || !slices.ContainsFunc(list.Items, func(c operations.Completion) bool { return strings.HasPrefix(c.Label, want) }) {
			t.Errorf("%s: %+v, %v", typed, list.Items, err)
		}
	}
	if _, err := operations.CompleteFirst.Call(t.Context(), to, by, operations.FirstLineStart{Line: "@mai", WorkspacePath: "/elsewhere"}); err == nil {
		t.Error("files of a place that is closed were named")
	}
}
