package operationstest

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/feed"
	"chorus/internal/operation"
	"chorus/internal/operations"
)

func making(s *story) {
	own := s.new(s.Ada, operations.NewSession{Title: "first"})
	s.equal("title", own.Title, "first")
	s.equal("status", own.Status, "idle")
	s.equal("provider and model", own.Provider+" "+own.Model, "demo script")
	s.equal("queue", own.Queue, 0)
	s.equal("owner", own.Owner, s.Ada.Principal.String())
	if own.ID == "" || !strings.HasPrefix(own.Thread, "web:") || !strings.Contains(own.Thread, own.ID) {
		s.Errorf("%q is called %q", own.ID, own.Thread)
	}
	if own.WorkspacePath == "" {
		s.Error("it works nowhere")
	}
	s.opens(s.Dir)
	there := s.new(s.Ada, operations.NewSession{WorkspacePath: s.Dir, Mode: "plan", Permissions: "locked"})
	if same, _ := filepath.EvalSymlinks(s.Dir); there.WorkspacePath != same {
		s.Errorf("it works in %s", there.WorkspacePath)
	}
	s.equal("mode and permissions", there.Mode+" "+there.Permissions, "plan locked")
	again, err := operations.GetSession.Call(s.ctx, s.As(s.Ada), s.Ada, operations.SessionRef{ID: own.ID})
	s.ok(err)
	s.equal("what is kept of its title", again.Title, "first")
}

// previews checks that a preview says what a session would be, and leaves nothing behind.
func previews(s *story) {
	s.opens(s.Dir)
	for _, in := range []operations.NewSession{{Model: "demo/script"}, {WorkspacePath: s.Dir, Mode: "plan", Permissions: "locked", Provider: "demo", Model: "script", MaxIterations: 3, Title: "later"}} {
		would, err := operations.PreviewSession.Call(s.ctx, s.As(s.Ada), s.Ada, in)
		s.ok(err)
		list, err := operations.ListSessions.Call(s.ctx, s.As(s.Ada), s.Ada, operations.SessionQuery{Listing: "all"})
		s.ok(err)
		s.equal("sessions before one is created", len(list.Items), 0)
		if would.CreatedAt.IsZero() || would.MovedAt.IsZero() {
			s.Errorf("it would be created %v and have moved %v", would.CreatedAt, would.MovedAt)
		}
		made := s.new(s.Ada, in)
		if in.WorkspacePath == "" {
			made.WorkspacePath = "" // its own folder, which does not exist before it
		}
		for what, pair := range map[string][2]any{
			"agent": {would.Agent, made.Agent}, "model": {would.Provider + "/" + would.Model, made.Provider + "/" + made.Model}, "mode": {would.Mode, made.Mode},
			"permissions": {would.Permissions, made.Permissions}, "sandbox": {would.Sandbox + would.RunsIn, made.Sandbox + made.RunsIn}, "folder": {would.WorkspacePath, made.WorkspacePath},
			"window": {would.Window, made.Window}, "owner": {would.Owner, made.Owner}, "title": {would.Title, made.Title}, "id": {would.ID + would.Thread, ""}, "number": {would.Seq, made.Seq},
		} {
			s.equal(what, pair[0], pair[1])
		}
		_, err = operations.DeleteSession.Call(s.ctx, s.As(s.Ada), s.Ada, operations.SessionDeletion{ID: made.ID, Now: true})
		s.ok(err)
	}
	said, err := operations.CreateSession.Call(s.ctx, s.As(s.Ada), s.Ada, operations.NewSession{Model: "demo/script", Message: "!say hello"})
	s.ok(err)
	seen := s.until(s.Ada, said.SessionID, said.Seq-1, isType(feed.TypeUserMessage))
	s.equal("the first message", only[feed.UserMessage](seen)[0].Text, "!say hello")
	s.equal("its number", seen[0].Header().Seq, said.Seq)
}

func mistakes(s *story) {
	file := filepath.Join(s.Dir, "file")
	s.ok(os.WriteFile(file, nil, 0o600))
	for name, in := range map[string]operations.NewSession{
		"no such directory": {WorkspacePath: filepath.Join(s.Dir, "nowhere")},
		"a file":            {WorkspacePath: file},
		"a relative path":   {WorkspacePath: "here"},
		"no such agent":     {Agent: "nobody-here"},
		"no agent's name":   {Agent: "No Name"},
		"no such model":     {Model: "demo-nothing"},
		"no such provider":  {Provider: "nobody"},
		"no such profile":   {Permissions: "nothing-like-it"},
		"no such mode":      {Mode: "dreaming"},
		"no such sandbox":   {Sandbox: "sand"},
		"a negative limit":  {MaxIterations: -1},
		"an endless title":  {Title: strings.Repeat("x", 10000)},
	} {
		if _, err := operations.CreateSession.Call(s.ctx, s.As(s.Admin), s.Admin, in); operation.KindOf(err) != operation.Invalid || len(err.Error()) < 20 {
			s.Errorf("%s: %v", name, err)
		}
		if _, err := operations.PreviewSession.Call(s.ctx, s.As(s.Admin), s.Admin, in); operation.KindOf(err) != operation.Invalid {
			s.Errorf("preview, %s: %v", name, err)
		}
	}
	_, err := operations.CreateSession.Call(s.ctx, s.As(s.Ada), s.Ada, operations.NewSession{Permissions: "open"})
	s.wants(operation.Forbidden, err)
	_, err = operations.CreateSession.Call(s.ctx, s.As(s.Ada), s.Ada, operations.NewSession{Sandbox: "host"})
	s.wants(operation.Forbidden, err)
	for _, dir := range []string{"/", "/etc", filepath.Dir(os.TempDir())} {
		_, err = operations.CreateSession.Call(s.ctx, s.As(s.Ada), s.Ada, operations.NewSession{WorkspacePath: dir})
		s.wants(operation.Forbidden, err)
		_, err = operations.PreviewSession.Call(s.ctx, s.As(s.Ada), s.Ada, operations.NewSession{WorkspacePath: dir})
		s.wants(operation.Forbidden, err)
	}
	id := s.new(s.Ada, operations.NewSession{}).ID
	for _, text := range []string{"", " \n\t"} {
		_, err := operations.Say.Call(s.ctx, s.As(s.Ada), s.Ada, operations.Message{ID: id, Message: text})
		s.wants(operation.Invalid, err)
	}
}

func madeOnce(s *story) {
	in := operations.NewSession{Title: "once", Key: "k1"}
	one := s.new(s.Ada, in)
	s.equal("the same key", s.new(s.Ada, in).ID, one.ID)
	if s.new(s.Bo, in).ID == one.ID {
		s.Error("somebody else's key gave Ada's session")
	}
	if s.new(s.Ada, operations.NewSession{Title: "once", Key: "k2"}).ID == one.ID {
		s.Error("another key gave the same session")
	}
}

func talking(s *story) {
	id := s.new(s.Ada, operations.NewSession{}).ID
	seen := s.say(s.Ada, id, "!think hm\n!say one\n!usage in=10 out=5")
	s.equal("answer", s.answer(seen), "one")
	end := only[feed.Completed](seen)
	s.equal("ends", len(end), 1)
	s.equal("why", end[0].StopReason, "done")
	s.equal("first object", seen[0].Header().Type, feed.TypeSessionStarted)
	s.equal("answer to the second", s.answer(s.say(s.Ada, id, "!say two")), "two")
	got, err := operations.GetSession.Call(s.ctx, s.As(s.Ada), s.Ada, operations.SessionRef{ID: id})
	s.ok(err)
	s.equal("status", got.Status, "idle")
	s.equal("outcome", got.LastOutcome, "done")
	s.equal("runs", len(got.Runs), 2)
	s.equal("steps", got.Runs[0].Steps, 1)
	s.equal("output of the first", got.Runs[1].Usage.OutputTokens, 5)
	if got.Usage.OutputTokens < 5 || got.Title == "" {
		s.Errorf("%+v", got)
	}
}

func takenOnce(s *story) {
	id := s.new(s.Ada, operations.NewSession{}).ID
	words := operations.Message{ID: id, Message: "!say once", Key: "the key"}
	first, err := operations.Say.Call(s.ctx, s.As(s.Ada), s.Ada, words)
	s.ok(err)
	second, err := operations.Say.Call(s.ctx, s.As(s.Ada), s.Ada, words)
	s.ok(err)
	if first.Again || !second.Again || second.Seq != first.Seq {
		s.Errorf("%+v, then %+v", first, second)
	}
	s.until(s.Ada, id, 0, func(it feed.Item) bool { return it.Header().Type.Terminal() })
	list, err := operations.Messages.Call(s.ctx, s.As(s.Ada), s.Ada, operations.EventRange{ID: id})
	s.ok(err)
	s.equal("messages of Ada", len(only[feed.UserMessage](list.Items)), 1)
	words.ID = s.new(s.Ada, operations.NewSession{}).ID
	third, err := operations.Say.Call(s.ctx, s.As(s.Ada), s.Ada, words)
	s.ok(err)
	s.equal("the same key elsewhere", third.Again, false)
}

func queue(s *story) {
	id := s.new(s.Ada, operations.NewSession{}).ID
	_, err := operations.Say.Call(s.ctx, s.As(s.Ada), s.Ada, operations.Message{ID: id, Message: "!say begun\n!wait"})
	s.ok(err)
	s.until(s.Ada, id, 0, isType(feed.TypeTextDelta))
	var last error
	places := []int{}
	for i := range 20 {
		said, err := operations.Say.Call(s.ctx, s.As(s.Ada), s.Ada, operations.Message{ID: id, Message: "!say " + strconv.Itoa(i), Key: strconv.Itoa(i)})
		if last = err; err != nil {
			break
		}
		places = append(places, said.Position)
	}
	s.wants(operation.Busy, last)
	if len(places) == 0 || places[0] != 1 || !slices.IsSorted(places) {
		s.Errorf("places %v", places)
	}
	full := strconv.Itoa(len(places))
	ended, err := operations.Abort.Call(s.ctx, s.As(s.Ada), s.Ada, operations.AbortRequest{ID: id, All: true})
	s.ok(err)
	s.equal("something ended", ended.Aborted, true)
	s.until(s.Ada, id, 0, func(it feed.Item) bool { return it.Header().Type.Terminal() })
	// A refusal frees the key.
	said, err := operations.Say.Call(s.ctx, s.As(s.Ada), s.Ada, operations.Message{ID: id, Message: "!say at last", Key: full})
	s.ok(err)
	s.equal("answer", s.answer(s.until(s.Ada, id, said.Seq, func(it feed.Item) bool { return it.Header().Type.Terminal() })), "at last")
}

// watching: a watch that starts anywhere sees exactly what comes after that position.
func watching(s *story) {
	id := s.new(s.Ada, operations.NewSession{Permissions: "standard"}).ID
	whole := durable(s.say(s.Ada, id, "!call list_files {}\n!end\n!say there: {{last}}"))
	last := whole[len(whole)-1].Header()
	for after := int64(0); after < last.Seq; after++ {
		got := durable(s.until(s.Ada, id, after, func(it feed.Item) bool { return it.Header().Seq == last.Seq }))
		want := slices.DeleteFunc(slices.Clone(whole), func(it feed.Item) bool { return it.Header().Seq <= after })
		if !slices.Equal(s.lines(got), s.lines(want)) {
			s.Fatalf("after %d:\n%s\nexpected\n%s", after, strings.Join(s.lines(got), "\n"), strings.Join(s.lines(want), "\n"))
		}
	}
	for item, err := range operations.Watch.Follow(s.ctx, s.As(s.Ada), s.Ada, operations.WatchRequest{ID: "01nowhere", After: 0}) {
		s.wants(operation.NotFound, err)
		if item != nil {
			s.Error("an object of no session")
		}
	}
}

func paging(s *story) {
	id := s.new(s.Ada, operations.NewSession{}).ID
	for range 3 {
		s.say(s.Ada, id, "!say hello")
	}
	all, err := operations.Events.Call(s.ctx, s.As(s.Ada), s.Ada, operations.EventQuery{ID: id, Limit: 500})
	s.ok(err)
	s.equal("next of all", all.Next, "")
	said, err := operations.Events.Call(s.ctx, s.As(s.Ada), s.Ada, operations.EventQuery{ID: id, Kind: "said", Limit: 2})
	s.ok(err)
	s.equal("answers on the first page", len(said.Items), 2)
	s.equal("where the next begins", said.Next, strconv.FormatInt(said.Items[1].Seq, 10))
	run, err := operations.Events.Call(s.ctx, s.As(s.Ada), s.Ada, operations.EventQuery{ID: id, Kind: "said", Run: said.Items[0].Run, Before: 1 << 40})
	s.ok(err)
	s.equal("answers of the first run", len(run.Items), 1)
	var forth, back []int64
	for after := int64(0); ; {
		page, err := operations.Events.Call(s.ctx, s.As(s.Ada), s.Ada, operations.EventQuery{ID: id, After: after, Limit: 4})
		s.ok(err)
		for _, ev := range page.Items {
			forth = append(forth, ev.Seq)
		}
		if page.Next == "" {
			break
		}
		after, err = strconv.ParseInt(page.Next, 10, 64)
		s.ok(err)
	}
	for before := int64(1 << 40); ; {
		page, err := operations.Events.Call(s.ctx, s.As(s.Ada), s.Ada, operations.EventQuery{ID: id, Before: before, Limit: 4})
		s.ok(err)
		for _, ev := range slices.Backward(page.Items) {
			back = append(back, ev.Seq)
		}
		if page.Next == "" {
			break
		}
		before, err = strconv.ParseInt(page.Next, 10, 64)
		s.ok(err)
	}
	slices.Reverse(back)
	if len(forth) != len(all.Items) || !slices.Equal(forth, back) {
		s.Errorf("forth %v, back %v, %d events", forth, back, len(all.Items))
	}
	list, err := operations.Messages.Call(s.ctx, s.As(s.Ada), s.Ada, operations.EventRange{ID: id})
	s.ok(err)
	if n := len(only[feed.Trace](list.Items)); n > 0 {
		s.Errorf("%d traces among the messages", n)
	}
	s.equal("prompts", len(only[feed.UserMessage](list.Items)), 3)
	s.equal("answers", len(only[feed.AssistantMessage](list.Items)), 3)
}

func steering(s *story) {
	id := s.new(s.Ada, operations.NewSession{}).ID
	said, err := operations.Steer.Call(s.ctx, s.As(s.Ada), s.Ada, operations.SteerMessage{ID: id, Message: "!say begun\n!wait"})
	s.ok(err)
	s.equal("nothing to steer", said.AsPrompt, true)
	s.until(s.Ada, id, 0, isType(feed.TypeTextDelta))
	_, err = operations.Steer.Call(s.ctx, s.As(s.Ada), s.Ada, operations.SteerMessage{ID: id, Message: "x", Mode: "shout"})
	s.wants(operation.Invalid, err)
	steer := operations.SteerMessage{ID: id, Message: "!say turned", Mode: chat.Inject, Key: "s"}
	said, err = operations.Steer.Call(s.ctx, s.As(s.Ada), s.Ada, steer)
	s.ok(err)
	if said.AsPrompt || said.Seq == 0 {
		s.Errorf("%+v", said)
	}
	again, err := operations.Steer.Call(s.ctx, s.As(s.Ada), s.Ada, steer)
	s.ok(err)
	if !again.Again || again.Seq != said.Seq {
		s.Errorf("%+v, then %+v", said, again)
	}
	ended, err := operations.Abort.Call(s.ctx, s.As(s.Ada), s.Ada, operations.AbortRequest{ID: id})
	s.ok(err)
	s.equal("something ended", ended.Aborted, true)
	seen := s.until(s.Ada, id, 0, func(it feed.Item) bool { return it.Header().Type.Terminal() })
	s.equal("why", only[feed.Completed](seen)[0].StopReason, "aborted")
	// A steer that arrives too late is the next prompt.
	seen = s.until(s.Ada, id, seen[len(seen)-1].Header().Seq, func(it feed.Item) bool { return it.Header().Type.Terminal() })
	s.equal("answer", s.answer(seen), "turned")
	ended, err = operations.Abort.Call(s.ctx, s.As(s.Ada), s.Ada, operations.AbortRequest{ID: id})
	s.ok(err)
	s.equal("nothing to end", ended.Aborted, false)
}

func listing(s *story) {
	var made []string
	for i := range 5 {
		made = append(made, s.new(s.Ada, operations.NewSession{Title: "number " + strconv.Itoa(i)}).ID)
	}
	var got []string
	for cursor := ""; ; {
		page, err := operations.ListSessions.Call(s.ctx, s.As(s.Ada), s.Ada, operations.SessionQuery{Limit: 2, Cursor: cursor})
		s.ok(err)
		if len(page.Items) > 2 {
			s.Fatalf("%d on a page of 2", len(page.Items))
		}
		for _, one := range page.Items {
			got = append(got, one.ID)
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	slices.Reverse(got)
	if !slices.Equal(got, made) {
		s.Errorf("%v, expected %v", got, made)
	}
	found, err := operations.ListSessions.Call(s.ctx, s.As(s.Ada), s.Ada, operations.SessionQuery{Search: "NUMBER 3"})
	s.ok(err)
	s.equal("found", len(found.Items), 1)
	none, err := operations.ListSessions.Call(s.ctx, s.As(s.Ada), s.Ada, operations.SessionQuery{Search: "100%"})
	s.ok(err)
	s.equal("found with a wildcard", len(none.Items), 0)
	for _, q := range []operations.SessionQuery{{Cursor: "zzz"}, {Status: "asleep"}} {
		_, err := operations.ListSessions.Call(s.ctx, s.As(s.Ada), s.Ada, q)
		s.wants(operation.Invalid, err)
	}
}

// hookPages: hooks are paged, each one once, even if another is created meanwhile.
func hookPages(s *story) {
	svc := s.As(s.Ada)
	make := func(name string) {
		_, err := operations.CreateHook.Call(s.ctx, svc, s.Ada, operations.NewHook{Name: name, Trigger: operation.JSON{Raw: []byte(`"every weekday at 9"`)}, Prompt: "look", Key: name})
		s.ok(err)
	}
	for _, name := range []string{"one", "two", "three"} {
		make(name)
	}
	first, err := operations.ListHooks.Call(s.ctx, svc, s.Ada, operations.HookQuery{Page: operations.Page{Limit: 2}})
	s.ok(err)
	make("four") // newest first: it is on none of the following pages
	rest, err := operations.ListHooks.Call(s.ctx, svc, s.Ada, operations.HookQuery{Page: operations.Page{Limit: 2, Cursor: first.Next}})
	s.ok(err)
	if len(first.Items) != 2 || len(rest.Items) != 1 || rest.Next != "" || rest.Items[0].ID != "one" {
		s.Errorf("%+v, then %+v", first, rest)
	}
	_, err = operations.ListHooks.Call(s.ctx, svc, s.Ada, operations.HookQuery{Page: operations.Page{Cursor: "nonsense"}})
	s.wants(operation.Invalid, err)
	_, err = operations.ListHookRuns.Call(s.ctx, svc, s.Ada, operations.HookRunQuery{ID: "one", Cursor: "nonsense"})
	s.wants(operation.Invalid, err)
}
