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
	"chorus/internal/operations"
	"chorus/internal/sim/discordsim"
	"chorus/internal/store"
	"chorus/internal/work"
)

// inForum is inWork with a forum as the project's channel.
func inForum(t *testing.T, board discordsim.ChannelSpec, o discordsim.Options) *guildWork {
	t.Helper()
	board.Name, board.Type = "board", "forum"
	o.Channels = []discordsim.ChannelSpec{{Name: "general"}, board}
	g := inWork(t, o, map[string]string{})
	g.link("web-app", g.Channel("board").String())
	return g
}

func (g *guildWork) posts() []discordsim.ForumPost {
	g.Helper()
	list, err := g.Posts("board")
	if err != nil {
		g.Fatal(err)
	}
	return list
}

// post waits until the board has one post that looks like this.
func (g *guildWork) postIs(what string, fits func(discordsim.ForumPost) bool) (found discordsim.ForumPost) {
	g.Helper()
	g.until(what, func() bool {
		for _, p := range g.posts() {
			if fits(p) {
				found = p
				return true
			}
		}
		return false
	})
	return found
}

func tagged(title, tag string) func(discordsim.ForumPost) bool {
	return func(p discordsim.ForumPost) bool {
		return p.Title == title && !p.Archived && !p.Locked && slices.Contains(p.Tags, tag)
	}
}

// On a forum a task is a post: its title, its state as a tag, its card as the first message. It is closed with the task and opened with it.
func TestWorkForumPostMovesWithItsTask(t *testing.T) {
	t.Parallel()
	g := inForum(t, discordsim.ChannelSpec{Tags: []string{"frontend"}}, discordsim.Options{})
	task := g.task("Add a dark mode")
	g.moves(task.ID, "", begun...)
	post := g.postIs("a post for the task", tagged("Add a dark mode", "working"))
	first := g.card(task.ID, "is being worked on", "stop")
	if first.ID != post.ID || first.ChannelID != post.ID || post.By != "chorus" {
		t.Errorf("the card is %s in %s, the post %+v", first.ID, first.ChannelID, post)
	}
	if tags, err := g.Tags("board"); err != nil || !slices.Equal(tags, []string{"frontend", "working", "waiting", "asks", "paused", "merging", "needs a yes", "done", "failed", "blocked", "deleted"}) {
		t.Errorf("the forum has the tags %q, %v", tags, err)
	}
	if err := g.TagPost(post.ID, "frontend"); err != nil {
		t.Fatal(err)
	}
	g.moves(task.ID, "", work.AgentCompleted, work.NeedsApproval)
	g.postIs("the tag says what is needed", func(p discordsim.ForumPost) bool {
		return slices.Equal(p.Tags, []string{"frontend", "needs a yes"}) // what people gave it stays
	})
	ada := g.mention("ada")
	g.message("call in the post", func(m discordsim.Message) bool {
		return m.ChannelID == post.ID && strings.HasPrefix(m.Text(), ada) && strings.Contains(m.Text(), "waits for your approval")
	})
	g.clicks("ada", g.card(task.ID, "waits for approval", "approve", "reject", "diff"), "approve")
	g.until("the yes counts", func() bool { return g.state(task.ID) == work.Verifying })
	g.moves(task.ID, "", work.VerifyPassed)
	g.postIs("the post is closed", func(p discordsim.ForumPost) bool {
		return p.Archived && p.Locked && slices.Equal(p.Tags, []string{"frontend", "done"})
	})
	g.card(task.ID, "is done", "diff", "reopen")
	g.moves(task.ID, "", work.AdminRestart)
	if again := g.postIs("the post is open again", tagged("Add a dark mode", "waiting")); again.ID != post.ID || len(g.posts()) != 1 {
		t.Errorf("%+v", g.posts())
	}
	if _, err := operations.DeleteTask.Call(t.Context(), g.app.Service.Operations(), g.by("ada"), operations.TaskRef{ID: task.ID}); err != nil {
		t.Fatal(err)
	}
	g.postIs("the post of a deleted task is closed", func(p discordsim.ForumPost) bool { return p.Archived && slices.Contains(p.Tags, "deleted") })
}

// Whatever is lost on the way and whenever the process dies, a task has one post.
func TestWorkForumPostsOnce(t *testing.T) {
	t.Parallel()
	g := inForum(t, discordsim.ChannelSpec{}, discordsim.Options{})
	// Discord has made the post, and its answer does not come back, until the process dies.
	lost := g.fault(discordsim.Fault{Kind: discordsim.FaultHangup, Route: "POST /channels/{channel}/threads", After: true})
	task := g.task("Add a dark mode")
	g.moves(task.ID, "", begun...)
	post := g.postIs("a post that nobody knows of", func(discordsim.ForumPost) bool { return true })
	other := g.task("Add a dark mode") // one of the same title is another
	g.moves(other.ID, "", begun...)
	g.until("both are tried", func() bool { return len(g.posts()) >= 2 })
	g.end()
	g.Clear(lost)
	g.start()
	// The reader had not written down how far it was.
	if err := g.app.DB.Remember(t.Context(), "work-cards", "discord/chorus", []byte("0")); err != nil {
		t.Fatal(err)
	}
	g.moves(task.ID, "", work.AgentCompleted, work.NeedsApproval)
	if got := g.card(task.ID, "waits for approval", "approve", "reject", "diff"); got.ID != post.ID {
		t.Errorf("the card is %s, the post was %s", got.ID, post.ID)
	}
	g.moves(other.ID, "", work.AgentCompleted, work.NeedsApproval)
	g.card(other.ID, "waits for approval", "approve", "reject", "diff")
	if list := g.posts(); len(list) != 2 {
		t.Errorf("two tasks have %d posts: %+v", len(list), list)
	}
}

// What a worker does stands in the post, and what people say there reaches it; what it says last does not open a closed post.
func TestWorkForumPostShowsTheWorker(t *testing.T) {
	t.Parallel()
	g := inForum(t, discordsim.ChannelSpec{}, discordsim.Options{})
	task := g.task("Add a dark mode")
	g.moves(task.ID, "", work.Assign)
	dir, err := g.app.Home.Ensure(filepath.Join(g.app.Home.TaskDir("web-app", task.ID), "files"))
	if err != nil {
		t.Fatal(err)
	}
	if err := g.app.DB.Write(t.Context(), func(tx database.Tx) error { return store.SetDir(tx, task.Thread, dir) }); err != nil {
		t.Fatal(err)
	}
	if refused, err := g.app.Service.Handler().SayWork(t.Context(), task, "!say it is dark now", "work/"+task.ID+"/1"); err != nil || refused != "" {
		t.Fatal(refused, err)
	}
	post := g.postIs("a post for the task", func(p discordsim.ForumPost) bool { return p.Title == "Add a dark mode" })
	g.message("answer of the worker", func(m discordsim.Message) bool { return m.ChannelID == post.ID && m.Text() == "it is dark now" })
	said, err := g.Say("ada", post.ID.String(), "say and what else")
	if err != nil {
		t.Fatal(err)
	}
	g.message("answer to words in the post", func(m discordsim.Message) bool { return answers(said)(m) && m.Text() == "and what else" })
	if list := g.events(task.Thread); !slices.ContainsFunc(list, func(e chat.Event) bool { return e.PlatformID == said.String() }) {
		t.Error("the words went elsewhere")
	}
	// Somebody's words are still being answered when the task ends.
	goOn := g.pauseModel(0)
	late, err := g.Say("ada", post.ID.String(), "say the last word")
	if err != nil {
		t.Fatal(err)
	}
	g.hasReaction(late, "⚙️")
	g.moves(task.ID, "", work.VerifyPassed)
	g.postIs("the post is closed", func(p discordsim.ForumPost) bool { return p.Archived && p.Locked })
	goOn()
	g.message("last answer", func(m discordsim.Message) bool { return m.ChannelID == post.ID && m.Text() == "the last word" })
	g.hasReaction(late, "✅")
	g.postIs("the post is closed again", func(p discordsim.ForumPost) bool { return p.Archived && p.Locked })
}

// What is said last in a post closes it again, at times in the middle of the last change of its card: that is made all the same.
func TestWorkForumPostIsClosedMeanwhile(t *testing.T) {
	t.Parallel()
	g := inForum(t, discordsim.ChannelSpec{}, discordsim.Options{})
	task := g.task("Add a dark mode")
	g.moves(task.ID, "", begun...)
	post := g.postIs("a post for the task", tagged("Add a dark mode", "working"))
	g.card(task.ID, "is being worked on", "stop")
	g.settledRows()
	closed := func() {
		if err := g.Archive(post.ID, true); err != nil {
			t.Fatal(err)
		}
	}
	closed()
	g.fault(discordsim.Fault{Kind: discordsim.FaultSlow, Route: "PATCH /channels/{channel}/messages/{message}", Millis: 1000})
	g.moves(task.ID, "", work.AgentCompleted, work.VerifyPassed)
	g.postIs("it is opened for its card", func(p discordsim.ForumPost) bool { return !p.Archived })
	closed()
	g.card(task.ID, "is done", "diff", "reopen")
	g.postIs("the post is closed", func(p discordsim.ForumPost) bool { return p.Archived && p.Locked && slices.Contains(p.Tags, "done") })
}

// A forum has room for twenty tags: people's own stay, and posts go without where there is no room, or no right to make tags or to lock.
func TestWorkForumLimits(t *testing.T) {
	t.Parallel()
	own := func(n int) (list []string) {
		for i := range n {
			list = append(list, fmt.Sprintf("own %d", i))
		}
		return list
	}
	title := strings.Repeat("a very long title ", 20)
	for name, c := range map[string]struct {
		board discordsim.ChannelSpec
		bot   discordsim.BotSpec
		tags  int
		want  []string
		locks bool
	}{
		"room for five": {board: discordsim.ChannelSpec{Tags: own(15)}, bot: discordsim.BotSpec{Name: "chorus"}, tags: 20, want: []string{"working"}, locks: true},
		"no room":       {board: discordsim.ChannelSpec{Tags: own(20)}, bot: discordsim.BotSpec{Name: "chorus"}, tags: 20, locks: true},
		"no rights": {board: discordsim.ChannelSpec{Tags: own(1)}, tags: 1,
			bot: discordsim.BotSpec{Name: "chorus", Permissions: &[]string{"view_channel", "send_messages", "send_messages_in_threads", "read_message_history", "create_public_threads"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := inForum(t, c.board, discordsim.Options{Bots: []discordsim.BotSpec{c.bot}})
			task := g.task(title)
			g.moves(task.ID, "", begun...)
			post := g.postIs("a post", func(discordsim.ForumPost) bool { return true })
			if len([]rune(post.Title)) > 100 || !strings.HasPrefix(title, strings.TrimSuffix(post.Title, "…")) || !slices.Equal(post.Tags, c.want) {
				t.Errorf("the post is %+v", post)
			}
			if tags, err := g.Tags("board"); err != nil || len(tags) != c.tags {
				t.Errorf("the forum has %d tags: %q, %v", len(tags), tags, err)
			}
			g.moves(task.ID, "", work.AgentCompleted, work.VerifyPassed)
			g.postIs("the post is closed", func(p discordsim.ForumPost) bool { return p.Archived && p.Locked == c.locks })
			g.card(task.ID, "is done", "diff", "reopen")
		})
	}
}

// A project gets a forum with it where that is asked for, and a forum is found by its name.
func TestWorkForumIsMade(t *testing.T) {
	t.Parallel()
	g := inForum(t, discordsim.ChannelSpec{}, discordsim.Options{})
	yes := true
	if _, err := operations.CreateProject.Call(t.Context(), g.app.Service.Operations(), g.by("ada"), operations.NewProject{Name: "My Site", Channels: &yes, Board: "forum"}); err != nil {
		t.Fatal(err)
	}
	linked := ""
	g.until("the project has its forum", func() bool {
		p, err := g.queue().Project(t.Context(), "my-site")
		linked = p.Channel
		return err == nil && linked != ""
	})
	g.until("the forum begins with a post about it", func() bool {
		list, err := g.Posts("my-site")
		return err == nil && len(list) == 1 && list[0].Title == "My Site"
	})
	if linked != g.Channel("my-site").String() {
		t.Errorf("it is linked to %s", linked)
	}
	if _, err := operations.SetControlInterface.Call(t.Context(), g.app.Service.Operations(), g.by("ada"), operations.ProjectChannelName{ID: "web-app", Channel: "general"}); err != nil {
		t.Fatal(err)
	}
	if got, err := operations.SetControlInterface.Call(t.Context(), g.app.Service.Operations(), g.by("ada"), operations.ProjectChannelName{ID: "web-app", Channel: "board"}); err != nil || got.Channel != g.Channel("board").String() {
		t.Errorf("%+v, %v", got, err)
	}
	// A notes thread is a post there.
	shown := g.command("ada", "general", "note thread", map[string]any{"project": "web-app"}).Text()
	if !strings.Contains(shown, "takes notes for web-app") || len(g.posts()) != 1 || g.posts()[0].Title != "Notes: Web App" {
		t.Errorf("%s: %+v", shown, g.posts())
	}
}

// A project that has used up its tokens says so once a day, to whoever it belongs to, also when the process dies; on a forum that is a post.
func TestWorkBudgetIsTold(t *testing.T) {
	t.Parallel()
	g := inForum(t, discordsim.ChannelSpec{}, discordsim.Options{})
	limit := int64(100)
	if _, err := operations.EditProject.Call(t.Context(), g.app.Service.Operations(), g.by("ada"), operations.ProjectChanges{ID: "web-app", TokenLimit: &limit}); err != nil {
		t.Fatal(err)
	}
	g.link("web-app", g.Channel("general").String())
	spend := func(tokens int) {
		t.Helper()
		if err := g.app.DB.Write(t.Context(), func(tx database.Tx) error {
			return tx.Exec(`INSERT INTO work_hours (project, hour, tokens, cost, attempts, completed) VALUES ('web-app', ?, ?, 0, 1, 0)
				ON CONFLICT (project, hour) DO UPDATE SET tokens = work_hours.tokens + excluded.tokens`, time.Now().Unix()/3600, tokens)
		}); err != nil {
			t.Fatal(err)
		}
	}
	told := func(channel string) (n int) {
		t.Helper()
		list, err := g.Messages(channel)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range list {
			if strings.Contains(m.Text(), "tokens in 24 hours") {
				n++
			}
		}
		return n
	}
	spend(99)
	task := g.task("Add a dark mode")
	g.moves(task.ID, "", done...)
	g.card(task.ID, "waits for approval", "approve", "reject", "diff")
	if n := told("general"); n != 0 {
		t.Errorf("one that has tokens left says so %d times", n)
	}
	spend(51)
	other := g.task("Add a menu")
	g.moves(other.ID, "", done...)
	ada := g.mention("ada")
	notice := g.message("notice", func(m discordsim.Message) bool {
		return strings.HasPrefix(m.Text(), ada) && strings.Contains(m.Text(), "**Web App** has used 150 of 100 tokens in 24 hours")
	})
	if len(notice.Mentions) != 1 {
		t.Errorf("it notifies %+v", notice.Mentions)
	}
	g.end()
	g.start()
	if err := g.app.DB.Remember(t.Context(), "work-cards", "discord/chorus", []byte("0")); err != nil {
		t.Fatal(err)
	}
	third := g.task("Add a footer")
	g.moves(third.ID, "", done...)
	g.card(third.ID, "waits for approval", "approve", "reject", "diff")
	if n := told("general"); n != 1 {
		t.Errorf("it is said %d times:\n%s", n, g.transcript())
	}

	// On a forum it is a post.
	g.link("web-app", g.Channel("board").String())
	fourth := g.task("Add a header")
	g.moves(fourth.ID, "", done...)
	post := g.postIs("a post about the tokens", func(p discordsim.ForumPost) bool { return strings.HasPrefix(p.Title, "Tokens used up on ") })
	if n := told(post.ID.String()); n != 1 {
		t.Errorf("the post says it %d times", n)
	}
}
