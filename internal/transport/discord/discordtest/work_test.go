package discordtest

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/sim/discordsim"
	"chorus/internal/store"
	"chorus/internal/store/tasks"
	"chorus/internal/work"
)

// guildWork is a guild with a project whose channel is general. Tasks are moved by hand, so that nothing is left to chance.
type guildWork struct {
	*guildT
	owner chat.Principal
}

func inWork(t *testing.T, o discordsim.Options, files map[string]string) *guildWork {
	t.Helper()
	if o.People == nil {
		o.People = []discordsim.PersonSpec{{Name: "ada"}, {Name: "bob"}}
	}
	g := &guildWork{guildT: inGuild(t, o, files)}
	g.owner = chat.Principal{Kind: "discord", ID: g.User("ada").String(), Name: "ada"}
	if _, err := operations.CreateProject.Call(t.Context(), g.app.Service.Operations(), g.by("ada"), operations.NewProject{Name: "Web App"}); err != nil {
		t.Fatal(err)
	}
	g.link("web-app", g.Channel("general").String())
	return g
}

// by is somebody of the guild who asks for an operation.
func (g *guildWork) by(person string) operation.Caller {
	return operation.Caller{Principal: chat.Principal{Kind: "discord", ID: g.User(person).String(), Name: person}, Scopes: []operation.Scope{operation.Read, operation.Chat},
		Here: fmt.Sprintf("discord:%s/%s", g.Guild(), g.Channel("general"))}
}

func (g *guildWork) link(project, channel string) {
	g.Helper()
	if _, err := operations.SetProjectChannel.Call(g.Context(), g.app.Service.Operations(), g.by("ada"), operations.ProjectChannelLink{ID: project, Channel: channel}); err != nil {
		g.Fatal(err)
	}
}

func (g *guildWork) queue() *tasks.Tasks { return tasks.New(g.app.DB, nil) }

func (g *guildWork) task(title string, needs ...string) work.Task {
	g.Helper()
	t, err := g.queue().Create(g.Context(), work.NewTask{Needs: needs, Task: work.Task{Project: "web-app", Title: title, Description: title, Agent: chat.DefaultAgent, Owner: g.owner,
		Priority: work.DefaultPriority, MaxRetries: work.DefaultMaxRetries, Approval: true, Branch: "b"}})
	if err != nil {
		g.Fatal(err)
	}
	return t
}

// moves lets a task take steps.
func (g *guildWork) moves(id, why string, steps ...work.Step) {
	g.Helper()
	for _, step := range steps {
		_, err := g.queue().Change(g.Context(), id, func(t *work.Task, now time.Time) ([]work.Event, error) {
			if step == work.Assign {
				t.Attempt++
			}
			t.Why = why
			e, err := t.Take(step, "system:queue", now)
			return []work.Event{e}, err
		})
		if err != nil {
			g.Fatal(err)
		}
	}
}

// begun and done bring a task to where a worker, or whoever says yes to its work, is waited for.
var (
	begun = []work.Step{work.Assign, work.AgentStarted}
	done  = append(slices.Clone(begun), work.AgentCompleted, work.NeedsApproval)
)

func (g *guildWork) state(id string) work.State {
	g.Helper()
	t, err := g.queue().Task(g.Context(), id)
	if err != nil {
		g.Fatal(err)
	}
	return t.State
}

// card waits until the card of a task says something.
func (g *guildWork) card(id, words string, buttons ...string) discordsim.Message {
	g.Helper()
	return g.message("card with "+words, func(m discordsim.Message) bool {
		if !strings.Contains(m.Text(), "`"+id+"`") || !strings.Contains(m.Text(), words) || m.Reference != nil {
			return false
		}
		for _, b := range buttons {
			if !slices.ContainsFunc(m.CustomIDs(), func(have string) bool { return strings.Contains(have, ":"+b+":"+id+":") }) {
				return false
			}
		}
		return len(m.CustomIDs()) == len(buttons)
	})
}

func (g *guildWork) cards(id string) (n int) {
	g.Helper()
	list, err := g.Messages("general")
	if err != nil {
		g.Fatal(err)
	}
	for _, m := range list {
		if strings.Contains(m.Text(), "`"+id+"`") && m.Reference == nil {
			n++
		}
	}
	return n
}

func (g *guildWork) calls(words string) (n int) {
	g.Helper()
	list, err := g.Messages("general")
	if err != nil {
		g.Fatal(err)
	}
	for _, m := range list {
		if m.Author.Bot && strings.Contains(m.Text(), words) && strings.HasPrefix(m.Text(), "<@") {
			n++
		}
	}
	return n
}

// press clicks a button of a card and waits for what only whoever clicked is told.
func (g *guildWork) press(who string, card discordsim.Message, button, words string) {
	g.Helper()
	g.clicks(who, card, button)
	g.message("words about "+button, func(m discordsim.Message) bool {
		return m.Flags&discordsim.FlagEphemeral != 0 && strings.Contains(m.Text(), words)
	})
}

// clicks clicks a button of which nothing is said.
func (g *guildWork) clicks(who string, card discordsim.Message, button string) {
	g.Helper()
	for _, id := range card.CustomIDs() {
		if strings.HasPrefix(id, "c1:task:"+button+":") {
			g.click(who, card.ID, id)
			return
		}
	}
	g.Fatalf("there is no %s among %v", button, card.CustomIDs())
}

// A task has one card in its project's channel, which moves with it; whoever is needed is called once.
func TestWorkCardMovesWithItsTask(t *testing.T) {
	t.Parallel()
	g := inWork(t, discordsim.Options{}, map[string]string{})
	first := g.task("Add a *dark* mode")
	second := g.task("Test it", first.ID)
	g.moves(first.ID, "", begun...)
	card := g.card(first.ID, "is being worked on", "stop")
	if !strings.Contains(card.Text(), `**Add a \*dark\* mode**`) {
		t.Errorf("the card says %q", card.Text())
	}
	g.moves(first.ID, "", work.AgentCompleted, work.NeedsApproval)
	g.card(first.ID, "waits for approval", "approve", "reject", "diff")
	if err := g.queue().Record(t.Context(), work.Event{Type: work.EventReminder, Project: "web-app", Task: first.ID, From: work.AwaitingApproval, To: work.AwaitingApproval}); err != nil {
		t.Fatal(err)
	}
	g.message("reminder", func(m discordsim.Message) bool {
		return answers(card.ID)(m) && strings.Contains(m.Text(), "still waits for your approval")
	})
	ada := g.mention("ada")
	g.message("call for a yes", func(m discordsim.Message) bool {
		return answers(card.ID)(m) && strings.HasPrefix(m.Text(), ada) && strings.Contains(m.Text(), "waits for your approval")
	})

	// The process is killed after it has written what is wanted, before it has noted how far it read; and a message was lost on the way.
	g.end()
	g.start()
	if err := g.app.DB.Remember(t.Context(), "work-cards", "discord/chorus", []byte("0")); err != nil {
		t.Fatal(err)
	}
	g.moves(first.ID, "the tests fail", work.Approved, work.MergeFailed)
	g.card(first.ID, "is blocked", "restart", "skip", "diff", "error", "edit")
	if got := g.card(first.ID, "1 task cannot continue without it: `"+second.ID+"`", "restart", "skip", "diff", "error", "edit"); !strings.Contains(got.Text(), "> the tests fail") || got.ID != card.ID {
		t.Errorf("the card is %s and says %q", got.ID, got.Text())
	}
	g.message("call for help", func(m discordsim.Message) bool {
		return answers(card.ID)(m) && strings.Contains(m.Text(), "is blocked and needs somebody")
	})
	if n := g.cards(first.ID); n != 1 {
		t.Errorf("%d cards for one task:\n%s", n, g.transcript())
	}
	if n := g.calls("** waits for your approval."); n != 1 {
		t.Errorf("ada was called %d times:\n%s", n, g.transcript())
	}
	if n := g.cards(second.ID); n != 1 { // in the words of the other's card
		t.Errorf("what only waits has %d cards of its own:\n%s", n-1, g.transcript())
	}
	g.moves(first.ID, "", work.AdminSkip)
	if got := g.card(first.ID, "is done", "diff", "reopen"); got.ID != card.ID {
		t.Errorf("another card: %s", g.transcript())
	}
}

// Buttons do what their operations do, with the rights of whoever presses; one that is too late says so.
func TestWorkButtons(t *testing.T) {
	t.Parallel()
	g := inWork(t, discordsim.Options{}, map[string]string{})
	task := g.task("Add a dark mode")
	g.moves(task.ID, "", done...)
	card := g.card(task.ID, "waits for approval", "approve", "reject", "diff")

	// What is not shared is ada's: bob is told nothing of it, and moves nothing.
	private := false
	if _, err := operations.EditProject.Call(t.Context(), g.app.Service.Operations(), g.by("ada"), operations.ProjectChanges{ID: "web-app", Shared: &private}); err != nil {
		t.Fatal(err)
	}
	if g.press("bob", card, "approve", "not found"); g.state(task.ID) != work.AwaitingApproval {
		t.Errorf("the task is %s", g.state(task.ID))
	}
	limit, err := g.Inject(discordsim.Fault{Kind: discordsim.FaultLimit, Route: "PATCH /channels/{channel}/messages/", Millis: 200}) // what people see is late
	if err != nil {
		t.Fatal(err)
	}
	g.clicks("ada", card, "approve")
	g.until("the yes of ada counts", func() bool { return g.state(task.ID) == work.Verifying })
	g.press("ada", card, "approve", "Too late for that: the task is being merged")
	g.Clear(limit)
	g.card(task.ID, "is being merged")

	// A no comes with words, which the worker gets.
	other := g.task("Add a menu")
	g.moves(other.ID, "", done...)
	card = g.card(other.ID, "waits for approval", "approve", "reject", "diff")
	feedback := fmt.Sprintf("c1:feedback:reject:%s:1", other.ID)
	g.click("ada", card.ID, feedback)
	i, err := g.Submit("ada", feedback, map[string]string{"text": "it must close again"})
	if err != nil {
		t.Fatal(err)
	}
	g.answered("the words", i)
	g.until("the task is given back", func() bool { return g.state(other.ID) == work.Ready })
	now, err := g.queue().Task(t.Context(), other.ID)
	if err != nil || !strings.Contains(now.Description, "it must close again") {
		t.Errorf("the worker is told %q, %v", now.Description, err)
	}
	// Another attempt is another thing to say yes to.
	g.card(other.ID, "waits for a worker", "edit")
	g.moves(other.ID, "", done...)
	card = g.card(other.ID, "waits for approval", "approve", "reject", "diff")
	if limit, err = g.Inject(discordsim.Fault{Kind: discordsim.FaultLimit, Route: "PATCH /channels/{channel}/messages/", Millis: 200}); err != nil {
		t.Fatal(err)
	}
	g.moves(other.ID, "", work.AdminRestart)
	g.moves(other.ID, "", done...)
	if g.press("ada", card, "approve", "moved on since"); g.state(other.ID) != work.AwaitingApproval {
		t.Errorf("the task is %s", g.state(other.ID))
	}

	g.Clear(limit)

	// A running one is stopped for good, started again, and skipped.
	third := g.task("Add a footer")
	g.moves(third.ID, "", begun...)
	g.clicks("ada", g.card(third.ID, "is being worked on", "stop"), "stop")
	g.clicks("ada", g.card(third.ID, "is blocked", "restart", "skip", "diff", "error", "edit"), "restart")
	g.card(third.ID, "waits for a worker", "edit")
	g.moves(third.ID, "", begun...)
	g.clicks("ada", g.card(third.ID, "is being worked on", "stop"), "stop")
	card = g.card(third.ID, "is blocked", "restart", "skip", "diff", "error", "edit")
	g.press("ada", card, "error", "Tries: 0 / 3")
	g.clicks("ada", card, "skip")
	g.card(third.ID, "is done (skipped by", "diff", "reopen")
	if n := g.calls("Add a footer"); n != 0 {
		t.Errorf("who stops something is not called for it:\n%s", g.transcript())
	}
}

// A channel that is deleted is unlinked; the next one shows what is on.
func TestWorkChannelGone(t *testing.T) {
	t.Parallel()
	g := inWork(t, discordsim.Options{Channels: []discordsim.ChannelSpec{{Name: "general"}, {Name: "web"}}}, map[string]string{})
	g.link("web-app", g.Channel("web").String())
	task := g.task("Add a dark mode")
	g.moves(task.ID, "", begun...)
	web := g.Channel("web")
	g.message("card in the linked channel", func(m discordsim.Message) bool { return m.ChannelID == web && strings.Contains(m.Text(), task.ID) })
	if err := g.DeleteChannel("web"); err != nil {
		t.Fatal(err)
	}
	g.until("the project has no channel", func() bool {
		g.moves(task.ID, "", work.AdminStop, work.AdminRestart, work.Assign, work.AgentStarted)
		p, err := g.queue().Project(t.Context(), "web-app")
		return err == nil && p.Channel == ""
	})
	g.link("web-app", g.Channel("general").String())
	g.card(task.ID, "is being worked on", "stop")
}

// Below a card stands what the worker does; what people say there reaches it.
func TestWorkThreadShowsTheWorker(t *testing.T) {
	t.Parallel()
	g := inWork(t, discordsim.Options{}, map[string]string{})
	task := g.task("Add a dark mode")
	g.moves(task.ID, "", work.Assign)
	dir, err := g.app.Home.Ensure(filepath.Join(g.app.Home.TaskDir("web-app", task.ID), "files"))
	if err != nil {
		t.Fatal(err)
	}
	if err := g.app.DB.Write(t.Context(), func(tx database.Tx) error { return store.SetDir(tx, task.Thread, dir) }); err != nil {
		t.Fatal(err)
	}
	script := "!call bash {\"command\":\"echo one > one.txt\"}\n!end\n!say it is dark now"
	if refused, err := g.app.Service.Handler().SayWork(t.Context(), task, script, "work/"+task.ID+"/1"); err != nil || refused != "" {
		t.Fatal(refused, err)
	}
	card := g.card(task.ID, "asks something", "stop")
	question := g.message("question of the worker below its card", func(m discordsim.Message) bool { return m.ChannelID == card.ID && isCard(m) && len(m.CustomIDs()) > 0 })
	g.until("ada is called", func() bool { return g.calls("asks something") == 1 })
	g.click("ada", question.ID, "c1:yes:"+approvalOf(t, question))
	g.message("answer of the worker", func(m discordsim.Message) bool { return m.ChannelID == card.ID && m.Text() == "it is dark now" })
	g.card(task.ID, "is being merged")
	said, err := g.Say("ada", card.ID.String(), "say and what else")
	if err != nil {
		t.Fatal(err)
	}
	g.message("answer to words in the thread", func(m discordsim.Message) bool { return answers(said)(m) && m.Text() == "and what else" })
	if list := g.events(task.Thread); !slices.ContainsFunc(list, func(e chat.Event) bool { return e.PlatformID == said.String() }) {
		t.Error("the words went elsewhere")
	}
}
