package operationstest

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"chorus/internal/feed"
	"chorus/internal/operation"
	"chorus/internal/operations"
)

func forks(s *story) {
	id := s.new(s.Ada, operations.NewSession{Permissions: "standard"}).ID
	seen := s.say(s.Ada, id, "!say first answer")
	at := seen[len(seen)-1].Header().Seq
	s.say(s.Ada, id, "!call list_files {}\n!end\n!say second answer")
	now, err := operations.GetSession.Call(s.ctx, s.As(s.Ada), s.Ada, operations.SessionRef{ID: id})
	s.ok(err)
	// Wherever the history is cut, the fork is a usable session.
	for seq := int64(1); seq <= now.Seq; seq += 2 {
		fork, err := operations.Fork.Call(s.ctx, s.As(s.Ada), s.Ada, operations.ForkRequest{ID: id, AtSeq: seq})
		s.ok(err)
		s.equal("where it comes from", fork.Session.ForkedFrom, id)
		s.equal("answer in the fork", s.answer(s.say(s.Ada, fork.SessionID, fmt.Sprintf("!say after %d", seq))), fmt.Sprintf("after %d", seq))
	}
	fork, err := operations.Fork.Call(s.ctx, s.As(s.Ada), s.Ada, operations.ForkRequest{ID: id, AtSeq: at})
	s.ok(err)
	list, err := operations.Messages.Call(s.ctx, s.As(s.Ada), s.Ada, operations.EventRange{ID: fork.SessionID})
	s.ok(err)
	answers := only[feed.AssistantMessage](list.Items)
	if len(answers) != 1 || answers[0].Text != "first answer" {
		s.Errorf("the fork begins with %v", s.lines(list.Items))
	}
	if started := only[feed.SessionStarted](list.Items); len(started) != 1 || started[0].ForkedFrom != id {
		s.Errorf("it does not say where it comes from: %+v", started)
	}
	for _, seq := range []int64{-1, now.Seq + 1} {
		_, err = operations.Fork.Call(s.ctx, s.As(s.Ada), s.Ada, operations.ForkRequest{ID: id, AtSeq: seq})
		s.wants(operation.Invalid, err)
	}
	after, err := operations.GetSession.Call(s.ctx, s.As(s.Ada), s.Ada, operations.SessionRef{ID: id})
	s.ok(err)
	s.equal("events of the old one", after.Seq, now.Seq)
}

// forksOfForks checks that calls keep what they changed, however often a conversation is forked.
func forksOfForks(s *story) {
	s.opens(s.Dir)
	id := s.new(s.Ada, operations.NewSession{WorkspacePath: s.Dir}).ID
	s.say(s.Ada, id, "!call write {\"path\":\"greeting.txt\",\"content\":\"hello\"}\n!end\n!say written")
	for depth := range 4 {
		list, err := operations.Messages.Call(s.ctx, s.As(s.Ada), s.Ada, operations.EventRange{ID: id})
		s.ok(err)
		ran := only[feed.ToolResult](list.Items)
		if len(ran) != 1 || !strings.Contains(ran[0].Diff, "+hello") || ran[0].Outcome != "ran" {
			s.Errorf("after %d forks: %+v", depth, ran)
		}
		s.say(s.Ada, id, fmt.Sprintf("!say at %d", depth))
		now, err := operations.GetSession.Call(s.ctx, s.As(s.Ada), s.Ada, operations.SessionRef{ID: id})
		s.ok(err)
		fork, err := operations.Fork.Call(s.ctx, s.As(s.Ada), s.Ada, operations.ForkRequest{ID: id, AtSeq: now.Seq})
		s.ok(err)
		id = fork.SessionID
	}
}

func resuming(s *story) {
	s.opens(s.Dir)
	folder := filepath.Join(s.Dir, ".agent")
	s.ok(os.MkdirAll(folder, 0o755))
	log := `{"type":"session_start","sessionId":"old-one","timestamp":"2026-01-01T00:00:00Z"}
{"type":"message","timestamp":"2026-01-01T00:00:01Z","message":{"role":"user","content":"remember the marmot"}}
{"type":"message","timestamp":"2026-01-01T00:00:02Z","message":{"role":"assistant","content":"I do"}}
`
	s.ok(os.WriteFile(filepath.Join(folder, "session_old-one.jsonl"), []byte(log), 0o600))
	svc := s.As(s.Ada)
	in := operations.ResumeRequest{ID: "old-one", WorkspacePath: s.Dir, Provider: "demo", Model: "script"}
	got, err := operations.ResumeSession.Call(s.ctx, svc, s.Ada, in)
	s.ok(err)
	s.equal("its name", got.SessionID, "old-one")
	s.equal("answer", s.answer(s.say(s.Ada, got.SessionID, "!say here again")), "here again")
	again, err := operations.ResumeSession.Call(s.ctx, svc, s.Ada, operations.ResumeRequest{ID: "old-one", WorkspacePath: s.Dir, Mode: "last-1"})
	s.ok(err)
	s.equal("the same one", again.Session.Thread, got.Session.Thread)
	again, err = operations.ResumeSession.Call(s.ctx, svc, s.Ada, operations.ResumeRequest{ID: "old-one"})
	s.ok(err)
	s.equal("the same one, without a folder", again.Session.Thread, got.Session.Thread)
	_, err = operations.ResumeSession.Call(s.ctx, svc, s.Ada, operations.ResumeRequest{ID: "old-one", WorkspacePath: "/does/not/exist"})
	s.wants(operation.Invalid, err)
	in.ID = "never-was"
	_, err = operations.ResumeSession.Call(s.ctx, svc, s.Ada, in)
	s.wants(operation.NotFound, err)
	in.ID = "../../etc/passwd"
	_, err = operations.ResumeSession.Call(s.ctx, svc, s.Ada, in)
	s.wants(operation.NotFound, err)
	_, err = operations.ResumeSession.Call(s.ctx, svc, s.Ada, operations.ResumeRequest{ID: "old-one", WorkspacePath: s.Dir, Mode: "backwards"})
	s.wants(operation.Invalid, err)
	said, err := operations.Say.Call(s.ctx, svc, s.Ada, operations.Message{ID: got.SessionID, Message: "!say begun\n!wait"})
	s.ok(err)
	s.until(s.Ada, got.SessionID, said.Seq, isType(feed.TypeTextDelta))
	in.ID = got.SessionID
	_, err = operations.ResumeSession.Call(s.ctx, svc, s.Ada, in)
	s.wants(operation.Conflict, err)
}

func attaching(s *story) {
	id := s.new(s.Ada, operations.NewSession{}).ID
	svc := s.As(s.Ada)
	text, err := operations.Attach.Call(s.ctx, svc, s.Ada, operations.NewAttachment{ID: id, File: operation.Upload("../../notes <b>.txt", strings.NewReader("the word is marzipan\n"))})
	s.ok(err)
	if strings.ContainsAny(text.Name, "/<>") || !strings.HasPrefix(text.MediaType, "text/plain") || text.Size != 21 {
		s.Errorf("%+v", text)
	}
	var picture bytes.Buffer
	s.ok(png.Encode(&picture, image.NewGray(image.Rect(0, 0, 8, 8))))
	image, err := operations.Attach.Call(s.ctx, svc, s.Ada, operations.NewAttachment{ID: id, File: operation.Upload("not-a-page.html", bytes.NewReader(picture.Bytes()))})
	s.ok(err)
	s.equal("type of a picture", image.MediaType, "image/png")
	page, err := operations.Attach.Call(s.ctx, svc, s.Ada, operations.NewAttachment{ID: id, File: operation.Upload("page.png", strings.NewReader("<html>\x00"))})
	s.ok(err)
	if strings.Contains(page.MediaType, "html") || strings.Contains(page.MediaType, "png") {
		s.Errorf("bytes were taken for %s", page.MediaType)
	}
	said, err := operations.Say.Call(s.ctx, svc, s.Ada, operations.Message{ID: id, Message: "!say got them", Attachments: []string{text.ID, image.ID}})
	s.ok(err)
	seen := s.until(s.Ada, id, 0, func(it feed.Item) bool { return it.Header().Type.Terminal() })
	message := only[feed.UserMessage](seen)[0]
	if message.Seq != said.Seq || len(message.Attachments) != 2 || !strings.Contains(message.Text, "marzipan") {
		s.Errorf("%+v", message)
	}
	for _, a := range message.Attachments {
		file, err := operations.Blob.Call(s.ctx, svc, s.Ada, operations.BlobRef{ID: id, Hash: a.Blob})
		s.ok(err)
		data, err := io.ReadAll(file)
		s.ok(err)
		s.ok(file.Close())
		s.equal("size of "+a.Name, int64(len(data)), file.Size)
	}
	_, err = operations.Blob.Call(s.ctx, svc, s.Ada, operations.BlobRef{ID: id, Hash: strings.Repeat("0", 64)})
	s.wants(operation.NotFound, err)
	for _, bad := range [][]string{{"nothing-like-it"}, {"../x"}, make([]string, 50)} {
		_, err = operations.Say.Call(s.ctx, svc, s.Ada, operations.Message{ID: id, Message: "x", Attachments: bad})
		s.wants(operation.Invalid, err)
	}
	_, err = operations.Attach.Call(s.ctx, svc, s.Ada, operations.NewAttachment{ID: id, File: operation.Upload("big", io.LimitReader(zeros{}, 30<<20))})
	s.wants(operation.TooLarge, err)
	_, err = operations.Attach.Call(s.ctx, svc, s.Ada, operations.NewAttachment{ID: id, File: operation.Upload("empty", strings.NewReader(""))})
	s.wants(operation.Invalid, err)
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func requests(s *story) {
	id := s.new(s.Ada, operations.NewSession{Permissions: "standard"}).ID
	s.say(s.Ada, id, "!call list_files {}\n!usage in=100 out=10\n!end\n!say one")
	s.say(s.Ada, id, "!say two")
	list, err := operations.Requests.Call(s.ctx, s.As(s.Ada), s.Ada, operations.EventRange{ID: id})
	s.ok(err)
	if len(list.Items) != 3 {
		s.Fatalf("%d requests", len(list.Items))
	}
	for i, r := range list.Items {
		if !r.Verified || r.System == "" || len(r.Tools) == 0 || len(r.Fragments) == 0 || r.Digest == "" {
			s.Errorf("request %d: %+v", i, r)
		}
		cached := 0
		for k, f := range r.Fragments {
			if f.Cached {
				s.equal("cached fragments stand in front", k, cached)
				cached++
			}
		}
		s.equal(fmt.Sprintf("cached of request %d", i), cached > 0, i > 0)
	}
	s.equal("tokens of the first", list.Items[0].Usage.InputTokens, 100)
	last, err := operations.Requests.Call(s.ctx, s.As(s.Ada), s.Ada, operations.EventRange{ID: id, Before: 1 << 40, Limit: 1})
	s.ok(err)
	if len(last.Items) != 1 || last.Items[0].Seq != list.Items[2].Seq || last.Next == "" || !last.Items[0].Verified || !last.Items[0].Fragments[0].Cached {
		s.Errorf("the last one: %+v", last)
	}
}

func searching(s *story) {
	id := s.new(s.Ada, operations.NewSession{}).ID
	s.say(s.Ada, id, "!say the quick brown marmot")
	hits, err := operations.Search.Call(s.ctx, s.As(s.Ada), s.Ada, operations.SearchQuery{Text: "marmot"})
	s.ok(err)
	if len(hits.Items) == 0 || hits.Items[0].Session != id || !strings.Contains(hits.Items[0].Snippet, "\x01marmot\x02") {
		s.Errorf("%+v", hits)
	}
	page, err := operations.Search.Call(s.ctx, s.As(s.Ada), s.Ada, operations.SearchQuery{Text: "marmot", Limit: 1})
	s.ok(err)
	if len(page.Items) != 1 || page.Next == "" {
		s.Errorf("a page of one: %+v", page)
	}
	_, err = operations.Search.Call(s.ctx, s.As(s.Ada), s.Ada, operations.SearchQuery{})
	s.wants(operation.Invalid, err)
}

func agents(s *story) {
	svc, by := s.As(s.Admin), s.Admin
	made, err := operations.CreateAgent.Call(s.ctx, svc, by, operations.NewAgent{Name: "helper", Model: "demo/script", Permissions: "standard", SystemPrompt: "You help."})
	s.ok(err)
	s.equal("name", made.Name, "helper")
	for _, in := range []operations.NewAgent{{Name: "No Name"}, {Name: "other", Model: "demo-nothing"}, {Name: "other", Permissions: "nothing-like-it"}} {
		_, err := operations.CreateAgent.Call(s.ctx, svc, by, in)
		s.wants(operation.Invalid, err)
	}
	_, err = operations.CreateAgent.Call(s.ctx, svc, by, operations.NewAgent{Name: "helper"})
	s.wants(operation.Conflict, err)
	session := s.new(s.Ada, operations.NewSession{Agent: "helper"})
	s.equal("where its session works", session.WorkspacePath, made.Workspace)
	s.say(s.Ada, session.ID, "!call write {\"path\":\"notes/a.txt\",\"content\":\"hello\"}\n!end\n!say written")
	dir, err := operations.AgentFile.Call(s.ctx, svc, by, operations.AgentFileRef{Name: "helper", Path: ""})
	s.ok(err)
	if !dir.Dir || len(dir.Entries) == 0 {
		s.Errorf("%+v", dir)
	}
	file, err := operations.AgentFile.Call(s.ctx, svc, by, operations.AgentFileRef{Name: "helper", Path: "notes/a.txt"})
	s.ok(err)
	s.equal("what is in the file", strings.TrimSpace(file.Text), "hello")
	// A path never leads out of the workspace: leading dots have no effect.
	for _, path := range []string{"../agent.json", "/etc/passwd", "../../../../etc/passwd", "notes/../../agent.json", "missing"} {
		_, err := operations.AgentFile.Call(s.ctx, svc, by, operations.AgentFileRef{Name: "helper", Path: path})
		s.wants(operation.NotFound, err)
	}
	detail, err := operations.GetAgent.Call(s.ctx, svc, by, operations.AgentRef{Name: "helper"})
	s.ok(err)
	if detail.SystemPrompt != "You help." || len(detail.Tools) == 0 || len(detail.Sessions) != 1 {
		s.Errorf("%+v", detail)
	}
	changed, err := operations.ConfigureAgent.Call(s.ctx, svc, by, operations.AgentSetting{Name: "helper", Key: "permissions", Value: "locked"})
	s.ok(err)
	s.equal("permissions", changed.Permissions, "locked")
	_, err = operations.ConfigureAgent.Call(s.ctx, svc, by, operations.AgentSetting{Name: "helper", Key: "colour", Value: "blue"})
	s.wants(operation.Invalid, err)
	_, err = operations.GetAgent.Call(s.ctx, svc, by, operations.AgentRef{Name: "nobody-here"})
	s.wants(operation.NotFound, err)
	first, err := operations.ListAgents.Call(s.ctx, svc, by, operations.AgentQuery{Page: operations.Page{Limit: 2}})
	s.ok(err)
	rest, err := operations.ListAgents.Call(s.ctx, svc, by, operations.AgentQuery{Page: operations.Page{Limit: 2, Cursor: first.Next}})
	s.ok(err)
	if len(first.Items) != 2 || first.Next == "" || len(rest.Items) != 1 || rest.Next != "" || rest.Items[0].Name != "helper" {
		s.Errorf("agents in pages: %+v, then %+v", first, rest)
	}
	_, err = operations.ListAgents.Call(s.ctx, svc, by, operations.AgentQuery{Page: operations.Page{Cursor: "nonsense"}})
	s.wants(operation.Invalid, err)
	gone := try(s, svc, by, operations.DestroyAgent, operations.DestroyAgentRequest{Name: "helper", KeepFiles: true})
	s.ok(gone())
	s.wants(operation.NotFound, gone())
	list, err := operations.ListAgents.Call(s.ctx, svc, by, operations.AgentQuery{})
	s.ok(err)
	s.equal("agents left", len(list.Items), 2) // the default one and the dispatcher
}

func settings(s *story) {
	svc, by := s.As(s.Admin), s.Admin
	_, err := operations.SetSetting.Call(s.ctx, svc, by, operations.SettingValue{Key: "noSuchKey", Value: "1"})
	s.wants(operation.NotFound, err)
	_, err = operations.SetSetting.Call(s.ctx, svc, by, operations.SettingValue{Key: "maxTokens", Value: "many"})
	s.wants(operation.Invalid, err)
	_, err = operations.SetSetting.Call(s.ctx, svc, by, operations.SettingValue{Key: "permissions", Value: "nothing-like-it"})
	s.wants(operation.Invalid, err)
	_, err = operations.SetSetting.Call(s.ctx, svc, by, operations.SettingValue{Key: "databaseUrl", Value: "postgres://x"})
	s.wants(operation.Conflict, err)
	got, err := operations.SetSetting.Call(s.ctx, svc, by, operations.SettingValue{Key: "defaultModel", Value: "demo/echo"})
	s.ok(err)
	s.equal("value", got.Value, "demo/echo")
	made, err := operations.CreateSession.Call(s.ctx, svc, by, operations.NewSession{})
	s.ok(err)
	s.equal("model of a new session", made.Session.Model, "echo")
	got, err = operations.SetSetting.Call(s.ctx, svc, by, operations.SettingValue{Key: "compaction.reserveTokens", Value: "2000"})
	s.ok(err)
	s.equal("value", got.Value, "2000")
	got, err = operations.SetSetting.Call(s.ctx, svc, by, operations.SettingValue{Key: "defaultModel", Value: ""})
	s.ok(err)
	s.equal("value", got.Value, "")
	all, err := operations.ListSettings.Call(s.ctx, svc, by, operation.None{})
	s.ok(err)
	found := false
	for _, one := range all.Items {
		found = found || one.Key == "compaction.reserveTokens" && one.Value == "2000" && one.Doc != ""
	}
	s.equal("it is in the list", found, true)
	lines, err := operations.ListAudit.Call(s.ctx, svc, by, operations.AuditQuery{Decision: "changed", Who: by.Principal.String()})
	s.ok(err)
	s.equal("changes in the audit log", len(lines.Items), 3)
	s.equal("who", lines.Items[0].Who, by.Principal.String())
}

func records(s *story) {
	id := s.new(s.Ada, operations.NewSession{}).ID
	s.say(s.Ada, id, "!say x\n!usage in=100 out=50")
	for _, by := range []string{"", "agent", "model", "person", "channel", "day", "month", "session", "run"} {
		costs, err := operations.GetCosts.Call(s.ctx, s.As(s.Ada), s.Ada, operations.CostQuery{By: by, Since: "today"})
		s.ok(err)
		if len(costs.Rows) != 1 || costs.Rows[0].OutputTokens != 50 || costs.Rows[0].Calls != 1 {
			s.Errorf("by %q: %+v", by, costs)
		}
		if by == "session" {
			s.equal("session", costs.Rows[0].Key, id)
		}
	}
	costs, err := operations.GetCosts.Call(s.ctx, s.As(s.Bo), s.Bo, operations.CostQuery{})
	s.ok(err)
	s.equal("costs of Bo", len(costs.Rows), 0)
	for _, q := range []operations.CostQuery{{By: "colour"}, {Since: "whenever"}} {
		_, err := operations.GetCosts.Call(s.ctx, s.As(s.Ada), s.Ada, q)
		s.wants(operation.Invalid, err)
	}
	s.audited()
}

// audited: the audit log can be queried by time and by number, and verifies itself from a hash on.
func (s *story) audited() {
	s.Helper()
	svc := s.As(s.Admin)
	for _, name := range []string{"ann", "ben"} {
		_, err := operations.CreateAgent.Call(s.ctx, svc, s.Admin, operations.NewAgent{Name: name})
		s.ok(err)
	}
	all, err := operations.ListAudit.Call(s.ctx, svc, s.Admin, operations.AuditQuery{})
	s.ok(err)
	if len(all.Items) < 2 {
		s.Fatalf("%d lines", len(all.Items))
	}
	last, first := all.Items[0], all.Items[len(all.Items)-1]
	for _, c := range []struct {
		what string
		q    operations.AuditQuery
		want int
	}{
		{"since the last", operations.AuditQuery{Since: last.At}, 1}, {"until the last", operations.AuditQuery{Until: last.At}, len(all.Items) - 1},
		{"since tomorrow", operations.AuditQuery{Since: last.At.Add(24 * time.Hour)}, 0}, {"before the last", operations.AuditQuery{Before: last.Seq}, len(all.Items) - 1},
		{"before the first", operations.AuditQuery{Before: first.Seq}, 0}, {"of no run", operations.AuditQuery{Run: "01none"}, 0},
	} {
		got, err := operations.ListAudit.Call(s.ctx, svc, s.Admin, c.q)
		s.ok(err)
		s.equal(c.what, len(got.Items), c.want)
	}
	check, err := operations.VerifyAudit.Call(s.ctx, svc, s.Admin, operations.VerifyRequest{Since: ""})
	s.ok(err)
	if !check.OK || check.Problem != "" || check.Break != nil || check.Head == "" || check.HeadSeal < 1 || check.Lines != int64(len(all.Items)) {
		s.Errorf("%+v", check)
	}
	check, err = operations.VerifyAudit.Call(s.ctx, svc, s.Admin, operations.VerifyRequest{Since: check.Head})
	s.ok(err)
	s.equal("lines from the seal on: the last of each chain", check.Lines, check.Chains)
	check, err = operations.VerifyAudit.Call(s.ctx, svc, s.Admin, operations.VerifyRequest{Since: "00ff"})
	s.ok(err)
	if check.OK || check.Break == nil || check.Break.What == "" || check.Break.Text == "" {
		s.Errorf("a hash that is nowhere: %+v", check)
	}
}

func system(s *story) {
	id := s.new(s.Ada, operations.NewSession{Permissions: "standard"}).ID
	s.asks(s.Ada, id, "touch waits")
	running := s.new(s.Ada, operations.NewSession{}).ID
	_, err := operations.Say.Call(s.ctx, s.As(s.Ada), s.Ada, operations.Message{ID: running, Message: "!say begun\n!wait"})
	s.ok(err)
	s.until(s.Ada, running, 0, isType(feed.TypeTextDelta))
	broken := s.new(s.Ada, operations.NewSession{}).ID
	s.say(s.Ada, broken, "!fail auth")
	for _, by := range []operation.Caller{s.Ada, s.Admin} {
		over, err := operations.GetOverview.Call(s.ctx, s.As(by), by, operation.None{})
		s.ok(err)
		if len(over.Running) != 1 || over.Running[0].ID != running || len(over.Waiting) != 1 || len(over.Failed) != 1 ||
			over.Failed[0].ID != broken || over.Failed[0].Error == "" || len(over.Recent) != 3 || over.Model == "" || over.StartedAt.IsZero() {
			s.Errorf("%+v", over)
		}
	}
	over, err := operations.GetOverview.Call(s.ctx, s.As(s.Bo), s.Bo, operation.None{})
	s.ok(err)
	s.equal("what Bo sees", len(over.Running)+len(over.Waiting)+len(over.Failed)+len(over.Recent), 0)
	models, err := operations.ListModels.Call(s.ctx, s.As(s.Ada), s.Ada, operation.None{})
	s.ok(err)
	found := false
	for _, m := range models.Items {
		found = found || m.Name == "demo/guide" && m.Ready
	}
	s.equal("the offline model is ready", found, true)
	checks, err := operations.CheckHealth.Call(s.ctx, s.As(s.Ada), s.Ada, operation.None{})
	s.ok(err)
	if len(checks.Items) < 3 {
		s.Errorf("%+v", checks)
	}
}
