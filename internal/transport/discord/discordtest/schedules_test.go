package discordtest

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/eventfile"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/polltest"
	"chorus/internal/schedule"
	"chorus/internal/schedule/clock"
	"chorus/internal/sim/discordsim"
	"chorus/internal/store"
	"chorus/internal/store/schedules"
	"chorus/internal/tool/timer"
)

var owner = operation.Caller{Principal: chat.Principal{Kind: chat.LocalUser, ID: "tester", Roles: []string{"owner"}}, Scopes: operation.Scopes()}

// keep keeps the schedules of the home as if it were that time.
func (g *guildT) keep(now time.Time) {
	g.Helper()
	c := clock.Clock{DB: schedules.New(g.app.DB), Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler), Say: g.app.Schedules(g.app.Service.Handler()).Say}
	if err := c.Keep(g.Context()); err != nil {
		g.Fatal(err)
	}
}

func (g *guildT) schedule(in operations.NewSchedule) operations.Schedule {
	g.Helper()
	s, err := g.app.Schedules(g.app.Service.Handler()).AddSchedule(g.Context(), owner, in)
	if err != nil {
		g.Fatal(err)
	}
	return s
}

func (g *guildT) scheduled(id string) operations.Schedule {
	g.Helper()
	s, err := g.app.Schedules(g.app.Service.Handler()).GetSchedule(g.Context(), owner, operations.ScheduleRef{ID: id})
	if err != nil {
		g.Fatal(err)
	}
	return s
}

// runs counts the runs of a conversation.
func (g *guildT) runs(thread chat.ThreadID) (n int) {
	g.Helper()
	for _, ev := range g.events(thread) {
		if ev.Body.Kind() == chat.KindRunStarted {
			n++
		}
	}
	return n
}

const morning = "Good morning.\n!say hello, team"

// A schedule with a channel posts its text there, opens a thread on the post and has the agent work in it: each time once.
// Whoever writes in the thread goes on with the conversation.
func TestScheduleOpensAThread(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{"shared.yaml": "answer: mentioned\n"})
	s := g.schedule(operations.NewSchedule{When: "every day at 9", Text: morning, Zone: "UTC", Adapter: "discord", Channel: g.Channel("general").String()})
	if s.Agent == "" || s.SessionID != "" || s.Channel != g.Channel("general").String() {
		t.Errorf("it is shown as %+v", s)
	}
	for range 2 {
		g.keep(s.Due)
	}
	post := g.message("post", func(m discordsim.Message) bool { return m.Text() == morning })
	g.message("answer in the thread", func(m discordsim.Message) bool { return m.ChannelID == post.ID && m.Text() == "hello, team" })
	thread := g.threadOf("general", post.ID)
	polltest.Until(t, "the run is in the history", func() bool {
		runs := g.scheduled(s.ID).Runs
		return len(runs) == 1 && runs[0].State == "said" && runs[0].Outcome == "done" && runs[0].SessionID == thread.Thread()
	})
	if n := g.countOwn("general"); n != 1 || g.runs(thread) != 1 {
		t.Errorf("%d posts and %d runs:\n%s", n, g.runs(thread), g.transcript())
	}
	g.say("ada", post.ID.String(), "!say and more")
	g.message("answer to a person", func(m discordsim.Message) bool { return m.ChannelID == post.ID && m.Text() == "and more" })
	if g.runs(thread) != 2 {
		t.Errorf("the thread is another conversation: %d runs", g.runs(thread))
	}
	g.keep(s.Due.AddDate(0, 0, 1))
	g.message("the next post", func(m discordsim.Message) bool { return m.Text() == morning && m.ID != post.ID })
}

// Killed after the post, with or without having heard that it is there, and before there is a thread: one post, one
// thread, one run.
func TestScheduleOpensOneThreadAcrossRestarts(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]discordsim.Fault{
		"before the thread":       {Kind: discordsim.FaultSlow, Route: "/threads", Millis: 60_000},
		"the receipt is lost":     {Kind: discordsim.FaultHangup, Route: "POST /channels/{channel}/messages", Body: "Good morning", After: true, Count: 1},
		"the thread is not heard": {Kind: discordsim.FaultHangup, Route: "/threads", After: true, Count: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := inGuild(t, discordsim.Options{}, map[string]string{"shared.yaml": "answer: mentioned\n"})
			s := g.schedule(operations.NewSchedule{When: "every day at 9", Text: morning, Zone: "UTC", Adapter: "discord", Channel: g.Channel("general").String()})
			g.fault(fault)
			g.keep(s.Due)
			post := g.message("post", func(m discordsim.Message) bool { return m.Text() == morning })
			g.end()
			g.Clear(0)
			g.start()
			g.keep(s.Due)
			g.message("answer in the thread", func(m discordsim.Message) bool { return m.ChannelID == post.ID && m.Text() == "hello, team" })
			thread := g.threadOf("general", post.ID)
			polltest.Until(t, "the run is in the history", func() bool {
				runs := g.scheduled(s.ID).Runs
				return len(runs) == 1 && runs[0].Outcome == "done"
			})
			if n := g.countOwn("general"); n != 1 || g.runs(thread) != 1 {
				t.Errorf("%d posts and %d runs:\n%s", n, g.runs(thread), g.transcript())
			}
		})
	}
}

// Event files can name a channel too; what cannot be posted is rejected with the reason.
func TestEventFilesOpenThreads(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{"shared.yaml": "answer: mentioned\n"})
	files := g.app.Schedules(g.app.Service.Handler()).EventFiles(owner.Principal)
	event := eventfile.Event{Type: eventfile.Immediate, Adapter: "discord", Channel: g.Channel("general").String(), Text: morning}
	for range 2 {
		if err := files.Say(t.Context(), "hello.json", "hello.json/1", event); err != nil {
			t.Fatal(err)
		}
	}
	post := g.message("post", func(m discordsim.Message) bool { return m.Text() == morning })
	g.message("answer in the thread", func(m discordsim.Message) bool { return m.ChannelID == post.ID && m.Text() == "hello, team" })
	if n := g.countOwn("general"); n != 1 {
		t.Errorf("%d posts:\n%s", n, g.transcript())
	}
	if got := g.lines(g.threadOf("general", post.ID)); !strings.Contains(got, "[EVENT:hello.json:immediate:immediate] Good morning.") {
		t.Errorf("the agent is told %q", got)
	}
	for why, to := range map[string][2]string{`no adapter "telegram"`: {"telegram", "1"}, "there is no channel 77": {"discord", "77"}} {
		event.Adapter, event.Channel = to[0], to[1]
		if err := files.Say(t.Context(), "bad.json", "bad.json/1", event); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%v: %v", to, err)
		}
	}
	if _, err := g.app.Schedules(g.app.Service.Handler()).AddSchedule(t.Context(), owner, operations.NewSchedule{When: "daily", Text: "x", Adapter: "slack", Channel: "1"}); err == nil {
		t.Error("a schedule was added for an adapter that there is not")
	}
	someone := operation.Caller{Principal: chat.Principal{Kind: chat.TokenHolder, ID: "t1"}, Scopes: []operation.Scope{operation.Read, operation.Chat}}
	if _, err := g.app.Schedules(g.app.Service.Handler()).AddSchedule(t.Context(), someone, operations.NewSchedule{When: "daily", Text: "x", Adapter: "discord", Channel: g.Channel("general").String()}); err == nil {
		t.Error("somebody who is not on the platform has it post there")
	}
}

// In a conversation that is there a schedule is answered where the conversation is, and a silent answer is not posted.
func TestScheduleSpeaksInAConversation(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{"shared.yaml": "routing: thread\n"})
	asked := g.say("ada", "general", "!say here")
	g.message("answer", func(m discordsim.Message) bool { return m.ChannelID == asked && m.Text() == "here" })
	thread := g.threadOf("general", asked)
	s := g.schedule(operations.NewSchedule{When: "every day at 9", Text: "!say [SILENT]", Zone: "UTC", Session: string(thread)})
	g.keep(s.Due)
	polltest.Until(t, "it was silent", func() bool { runs := g.scheduled(s.ID).Runs; return len(runs) == 1 && runs[0].Outcome == "silent" })
	loud := g.schedule(operations.NewSchedule{When: "every day at 10", Text: "!say on time", Zone: "UTC", Session: string(thread)})
	g.keep(loud.Due)
	g.message("what is said on time", func(m discordsim.Message) bool { return m.ChannelID == asked && m.Text() == "on time" })
	list, err := g.Messages(asked.String())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list {
		if strings.Contains(m.Text(), "SILENT") {
			t.Errorf("posted: %q", m.Text())
		}
	}
}

// When the owner's budget is spent nothing is said, and people are told once.
func TestScheduleWithoutMoney(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{"shared.yaml": "budgets: {person: {day: 0.000001}}\nprices: {demo/script: {input: 3, output: 15}}\n"})
	asked := g.say("ada", "general", "!say here")
	g.message("word about the budget", answers(asked))
	thread := g.threadOf("general", asked)
	channel := g.schedule(operations.NewSchedule{When: "every day at 9", Text: morning, Zone: "UTC", Adapter: "discord", Channel: g.Channel("random").String()})
	inside := g.schedule(operations.NewSchedule{When: "every day at 9", Text: "!say never", Zone: "UTC", Session: string(thread)})
	for day := range 3 {
		g.keep(inside.Due.AddDate(0, 0, day))
	}
	g.message("notice in the conversation", func(m discordsim.Message) bool { return strings.Contains(m.Text(), "The schedule "+inside.ID) })
	g.message("notice in the channel", func(m discordsim.Message) bool { return strings.Contains(m.Text(), "The schedule "+channel.ID) })
	for _, id := range []string{channel.ID, inside.ID} {
		runs := g.scheduled(id).Runs
		if len(runs) != 3 || runs[0].State != "refused" || !strings.Contains(runs[0].Why, "budget") {
			t.Errorf("%s: %+v", id, runs)
		}
	}
	g.hasReaction(g.say("ada", "general", "!say later"), "❌") // whatever was to be posted is there by now
	if n := strings.Count(g.transcript(), "was not kept"); n != 1 {
		t.Errorf("told %d times:\n%s", n, g.transcript())
	}
}

// planned are what is still to come in a room.
func (g *guildT) planned(thread chat.ThreadID) []schedule.Schedule {
	g.Helper()
	list, err := schedules.New(g.app.DB).SchedulesIn(g.Context(), thread, 50)
	if err != nil {
		g.Fatal(err)
	}
	return list
}

// results are what the tools of a room said last, the newest first.
func (g *guildT) results(thread chat.ThreadID) (out []string) {
	g.Helper()
	for _, ev := range g.events(thread) {
		if ran, ok := ev.Body.(chat.ToolRan); ok {
			out = append([]string{ran.Blocks.Text()}, out...)
		}
	}
	return out
}

// An agent in a room sets a timer for itself, knows of it, is woken by it once, and is woken again only if it was set again:
// nothing is asked of a model in an idle week.
func TestRoomTimer(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, roomFiles())
	thread := g.room("general", "chorus")
	g.say("ada", "general", g.mention("chorus")+"\n!call set_timer {\"when\":\"in 20 minutes\",\"note\":\"look at the oven\\n!say the oven!\"}\n!---\n!say it is set")
	g.message("word that it is set", func(m discordsim.Message) bool { return m.Text() == "it is set" })
	set := g.planned(thread)
	if len(set) != 1 || set[0].Kind != schedule.Timer || set[0].Owner.String() != "discord:"+g.User("ada").String() {
		t.Fatalf("planned: %+v", set)
	}
	if list, err := g.app.Schedules(g.app.Service.Handler()).ListSchedules(t.Context(), owner, operation.None{}); err != nil || len(list.Items) != 1 || list.Items[0].Kind != "timer" {
		t.Errorf("people see %+v, %v", list.Items, err)
	}
	g.keep(set[0].Due.Add(-time.Second))
	g.ask("ada", "general", "chorus", "not yet")
	if future := g.noteOf(thread, "future"); !strings.Contains(future, "your timer "+set[0].ID+": look at the oven") || !strings.Contains(future, "[SILENT]") {
		t.Errorf("of the future it knows %q", future)
	}
	for range 2 {
		g.keep(set[0].Due)
	}
	g.message("what it says in time", func(m discordsim.Message) bool { return m.Text() == "the oven!" && m.Reference == nil })
	before := g.runs(thread)
	for day := range 8 {
		g.keep(set[0].Due.AddDate(0, 0, day))
	}
	g.ask("ada", "general", "chorus", "quiet")
	if n := g.runs(thread); n != before+1 {
		t.Errorf("%d runs in an idle week", n-before-1)
	}
	if future := g.noteOf(thread, "future"); !strings.Contains(future, "Nothing is planned") {
		t.Errorf("of the future it knows %q", future)
	}
}

// An agent may go on by itself, but not for ever: after some times a person must have spoken.
func TestRoomSelfActivation(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, roomFiles())
	thread := g.room("general", "chorus")
	ada := chat.Principal{Kind: "discord", ID: g.User("ada").String()}
	g.ask("ada", "general", "chorus", "begin")
	timers, who := g.app.Host.Timers(thread), ada
	again := func(n int) error {
		_, err := timers.Set(t.Context(), timer.New{Key: fmt.Sprint("call", n), When: "in 5 minutes", For: []chat.Principal{who}})
		return err
	}
	for n := 1; n <= 3; n++ {
		for range 2 { // a call that is made again after a crash sets nothing twice
			if err := again(n); err != nil {
				t.Fatal(err)
			}
		}
		set := g.planned(thread)
		if len(set) != 1 || set[0].Kind != schedule.SelfActivation || set[0].Owner.Person().ID != ada.ID {
			t.Fatalf("after %d times, planned: %+v", n-1, set)
		}
		g.keep(set[0].Due)
		g.has(thread, chat.KindRunEnded, 1+n)
		owner := set[0].Owner
		who = chat.Principal{Kind: chat.ScheduleRule, ID: set[0].ID, For: &owner} // as its run acts
	}
	if err := again(4); err == nil || !strings.Contains(err.Error(), "3 times since a person spoke") {
		t.Errorf("it goes on for ever: %v", err)
	}
	for n := 10; n < 17; n++ { // the other ways to be woken end too
		if _, err := timers.Set(t.Context(), timer.New{Key: fmt.Sprint("call", n), When: "in 5 minutes", Note: "x", For: []chat.Principal{who}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := timers.Set(t.Context(), timer.New{Key: "call17", When: "in 5 minutes", Note: "x", For: []chat.Principal{who}}); err == nil {
		t.Error("it sets timers for ever")
	}
	for _, s := range g.planned(thread) {
		if err := timers.Cancel(t.Context(), s.ID); err != nil {
			t.Fatal(err)
		}
	}
	g.say("ada", "general", g.mention("chorus")+"\n!call activate_self {\"after\":\"in 5 minutes\"}\n!---\n!say with somebody")
	g.has(thread, chat.KindRunEnded, 5)
	set := g.planned(thread)
	if len(set) != 1 {
		t.Fatalf("somebody spoke, and planned is %+v", set)
	}
	for _, c := range []struct{ call, want string }{
		{`activate_self {"after":"in 5 minutes"}`, "already"},
		{`set_timer {"when":"every hour","note":"x"}`, "comes once"},
		{`set_timer {"when":"in 10s","note":"x"}`, "too soon"},
		{`set_timer {"when":"2099-01-01 09:00","note":"x"}`, "too far away"},
		{`cancel_timer {"id":"none"}`, "no such timer"},
		{`cancel_timer {"id":"` + set[0].ID + `"}`, "cancelled"},
	} {
		g.say("ada", "general", g.mention("chorus")+"\n!call "+c.call+"\n!---\n!say tried")
		g.when(thread, c.want, func() bool { return strings.Contains(g.results(thread)[0], c.want) })
	}
	if set := g.planned(thread); len(set) != 0 {
		t.Errorf("cancelled, and planned is %+v", set)
	}
}

// noteOf is the newest note about something.
func (g *guildT) noteOf(thread chat.ThreadID, what string) (text string) {
	g.Helper()
	for _, ev := range g.events(thread) {
		if n, ok := ev.Body.(chat.Noted); ok && n.What == what {
			text = n.Text
		}
	}
	return text
}

// What was to be said in a conversation is not said any more when its thread was deleted on Discord. Who brings it back has its schedules, too: what was
// missed is caught up with as after a pause of Chorus itself.
func TestSchedulesEndWithTheirThread(t *testing.T) {
	t.Parallel()
	g, asked := inThread(t, "")
	thread := g.threadOf("general", asked)
	s := g.schedule(operations.NewSchedule{When: "every day at 9", Text: "!say good morning", Zone: "UTC", Session: string(thread)})
	g.keep(s.Due)
	g.message("what the schedule said", func(m discordsim.Message) bool { return m.ChannelID == asked && m.Text() == "good morning" })
	before := g.runs(thread)
	if err := g.DeleteChannel(asked.String()); err != nil {
		t.Fatal(err)
	}
	g.listing(thread, store.Deleted)
	g.keep(s.Due.AddDate(0, 0, 3))
	if now := g.scheduled(s.ID); now.Status != "deleted" || len(now.Next) != 0 || len(now.Runs) != 1 || g.runs(thread) != before {
		t.Errorf("after the deletion: %+v, %d runs", now, g.runs(thread))
	}
	if _, err := g.app.Service.Handler().RestoreSession(t.Context(), owner, operations.DeletedSessionRef{ID: string(thread)}); err != nil {
		t.Fatal(err)
	}
	g.keep(s.Due.AddDate(0, 0, 3))
	if now := g.scheduled(s.ID); now.Status != "active" || len(now.Runs) != 2 {
		t.Errorf("brought back: %+v", now)
	}
	g.has(thread, chat.KindRunStarted, before+1)
}

// A notice of a process that is longer than a message is cut as an answer is: each part stands there once, in order, in the channel of the conversation.
func TestLongNoticeOfAProcess(t *testing.T) {
	t.Parallel()
	g, asked := inThread(t, "")
	thread := g.threadOf("general", asked)
	text := "**The build failed.**\n```\n" + strings.Repeat("this is a line that it printed\n", 150) + "the last line\n```"
	in := chat.Inbound{Threads: []chat.ThreadID{thread}, Principal: chat.Principal{Kind: chat.ProcessHook, ID: "p1"}, From: chat.Participant{ID: "p1", Name: "process", Kind: chat.System}, Blocks: chat.TextBlocks(text),
		Platform: "process", PlatformID: "p1/1", Channel: g.Channel("general").String(), Post: asked.String()}
	if _, err := g.app.Service.Handler().Engine.Deliver(t.Context(), in, nil); err != nil {
		t.Fatal(err)
	}
	g.message("the end of the notice", func(m discordsim.Message) bool {
		return m.ChannelID == asked && strings.Contains(m.Text(), "the last line")
	})
	list, err := g.Messages(asked.String())
	if err != nil {
		t.Fatal(err)
	}
	var parts []string
	for _, m := range list {
		if strings.Contains(m.Text(), "that it printed") {
			parts = append(parts, m.Text())
		}
	}
	lines := strings.Count(strings.Join(parts, ""), "this is a line")
	if len(parts) != 3 || !strings.HasPrefix(parts[0], "**The build failed.**") || lines != 150 {
		t.Errorf("%d parts with %d lines:\n%s", len(parts), lines, g.transcript())
	}
}
