package discordtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"chorus/internal/agents/builtin"
	"chorus/internal/chat"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/sim/discordsim"
	"chorus/internal/work"
)

// A channel is found by its name on the server where somebody asks, among those that they can read; two of one name are not guessed at.
func TestWorkChannelByName(t *testing.T) {
	t.Parallel()
	g := inWork(t, discordsim.Options{Channels: []discordsim.ChannelSpec{{Name: "general"}, {Name: "web"}, {Name: "twice"}, {Name: "other"}}}, map[string]string{})
	if err := g.Rename("other", "twice"); err != nil {
		t.Fatal(err)
	}
	named := func(person, name string) (operations.ProjectChannel, error) {
		return operations.SetControlInterface.Call(t.Context(), g.app.Service.Operations(), g.by(person), operations.ProjectChannelName{ID: "web-app", Channel: name})
	}
	if got, err := named("ada", " #web "); err != nil || got.Channel != g.Channel("web").String() {
		t.Errorf("%+v, %v", got, err)
	}
	for name, want := range map[string]string{"nothing": "No text channel or forum named 'nothing' found in this server", "twice": "2 channels are named 'twice'", "#": "channel_name is required"} {
		if _, err := named("ada", name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Somebody at the terminal means the only server that there is.
	local := operation.Caller{Principal: g.owner, Scopes: operation.Scopes()}
	if got, err := operations.SetControlInterface.Call(t.Context(), g.app.Service.Operations(), local, operations.ProjectChannelName{ID: "web-app", Channel: "general"}); err != nil || got.Channel != g.Channel("general").String() {
		t.Errorf("%+v, %v", got, err)
	}
}

// A project gets a channel with it if whoever makes it could make one, once whatever happens; with it goes its channel.
func TestWorkChannelIsMadeAndArchived(t *testing.T) {
	t.Parallel()
	g := inWork(t, discordsim.Options{}, map[string]string{})
	yes := true
	wants := operations.NewProject{Name: "My Site", Channels: &yes}
	if _, err := operations.CreateProject.Call(t.Context(), g.app.Service.Operations(), g.by("bob"), wants); operation.KindOf(err) != operation.Forbidden || !strings.Contains(err.Error(), "may not manage channels") {
		t.Errorf("bob: %v", err)
	}
	if _, err := operations.CreateProject.Call(t.Context(), g.app.Service.Operations(), g.by("ada"), wants); err != nil {
		t.Fatal(err)
	}
	linked := func() string {
		p, err := g.queue().Project(t.Context(), "my-site")
		if err != nil {
			t.Fatal(err)
		}
		return p.Channel
	}
	g.until("the project has its channel", func() bool { return linked() != "" })
	channel := g.Channel("my-site")
	if linked() != channel.String() {
		t.Fatalf("it is linked to %s, and the channel is %s", linked(), channel)
	}
	g.message("greeting", func(m discordsim.Message) bool {
		return m.ChannelID == channel && strings.Contains(m.Text(), "channel of the project **My Site**")
	})
	// The process died after the channel was made and before anybody knew: it is found again.
	g.end()
	g.start()
	if _, err := g.queue().ChangeProject(t.Context(), "my-site", func(p *work.Project) (work.Event, error) {
		p.Channel = ""
		return work.Event{Type: "project.created"}, nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := g.app.DB.Remember(t.Context(), work.MemoWantedChannel, "my-site", fmt.Appendf(nil, `{"place":"discord:%s/%s"}`, g.Guild(), g.Channel("general"))); err != nil {
		t.Fatal(err)
	}
	g.until("the project has its channel again", func() bool { return linked() == channel.String() })

	if _, err := operations.DeleteProject.Call(t.Context(), g.app.Service.Operations(), g.by("ada"), operations.ProjectDeletion{ID: "my-site", Archive: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := g.WaitEvent(g.soon(), func(h discordsim.Happening) bool {
		return h.Name == "CHANNEL_UPDATE" && strings.Contains(string(h.Data), "archived-my-site")
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Say("bob", channel.String(), "is anybody there"); err == nil {
		t.Error("bob writes in an archived channel")
	}
}

// What is said in a notes thread is sorted into notes by the agent there, and confirmed in a line.
func TestWorkNotesThread(t *testing.T) {
	t.Parallel()
	g := inWork(t, discordsim.Options{}, map[string]string{"shared.yaml": "answer: bound\n"})
	shown := g.command("ada", "general", "note thread", map[string]any{"project": "web-app"}).Text()
	id, _, _ := strings.Cut(strings.TrimPrefix(shown, "<#"), ">")
	if !strings.Contains(shown, "takes notes for web-app") {
		t.Fatalf("/note thread shows %q", shown)
	}
	said, err := g.Say("bob", id, "!call append_note {\"title\":\"Ideas\",\"content\":\"a darker dark mode\"}\n!end\n!say Added to Ideas.")
	if err != nil {
		t.Fatal(err)
	}
	g.hasReaction(said, "✅")
	g.message("confirmation", func(m discordsim.Message) bool { return m.ChannelID.String() == id && m.Text() == "Added to Ideas." })
	note, err := operations.ReadNote.Call(t.Context(), g.app.Service.Operations(), g.by("ada"), operations.NoteRef{Title: "Ideas", Project: "web-app"})
	if err != nil || !strings.Contains(note.Content, "a darker dark mode") {
		t.Errorf("%+v, %v", note, err)
	}
	told := ""
	thread := chat.ThreadID(fmt.Sprintf("discord:%s/%s:%s@%s", g.Guild(), g.Channel("general"), id, builtin.Dispatcher))
	for _, e := range g.events(thread) {
		told += fmt.Sprintf("%+v", e.Body)
	}
	if !strings.Contains(told, "this is the notes thread for project `web-app`") || !strings.Contains(told, "ACTIVE PROJECT: `web-app`") {
		t.Errorf("the model is told %.3000s", told)
	}
}

// A notes thread begins with a list of the notes; a button shows one to whoever presses, who can make a task of it.
func TestWorkNotesList(t *testing.T) {
	t.Parallel()
	g := inWork(t, discordsim.Options{}, map[string]string{})
	shown := g.command("ada", "general", "note thread", map[string]any{"project": "web-app"}).Text()
	id, _, _ := strings.Cut(strings.TrimPrefix(shown, "<#"), ">")
	list := func(words string, buttons int) discordsim.Message {
		t.Helper()
		return g.message("list with "+words, func(m discordsim.Message) bool {
			return m.ChannelID.String() == id && strings.Contains(m.Text(), "**Notes of Web App**") && strings.Contains(m.Text(), words) && len(m.CustomIDs()) == buttons
		})
	}
	first := list("There are none yet", 0)
	writes := func(title, text string) {
		t.Helper()
		if _, err := operations.WriteNote.Call(t.Context(), g.app.Service.Operations(), g.by("ada"), operations.NoteText{Title: title, Content: text, Project: "web-app"}); err != nil {
			t.Fatal(err)
		}
	}
	writes("Ideas", "# Ideas\n\na darker dark mode\n")
	if now := list("Press one to read it", 1); now.ID != first.ID {
		t.Errorf("another list: %s and %s", first.ID, now.ID)
	}
	// Killed before it had written down how far it was: there is one list all the same.
	g.end()
	g.start()
	if err := g.app.DB.Remember(t.Context(), "work-cards", "discord/chorus", []byte("0")); err != nil {
		t.Fatal(err)
	}
	writes("Long", "# Long\n\n"+strings.Repeat("a long thought ", 500))
	now := list("Press one to read it", 2)
	messages, err := g.Messages(id)
	if err != nil || now.ID != first.ID || len(messages) != 1 {
		t.Errorf("%d messages in the thread, %v", len(messages), err)
	}
	const long, ideas = 0, 1 // what changed last is first
	press := func(who string, button int, words string) discordsim.Message {
		t.Helper()
		g.click(who, now.ID, now.CustomIDs()[button])
		return g.message("note with "+words, func(m discordsim.Message) bool {
			return m.Flags&discordsim.FlagEphemeral != 0 && strings.Contains(m.Text(), words)
		})
	}
	if m := press("bob", long, "The whole note is attached"); len(m.Attachments) != 1 || m.Attachments[0].Filename != "long.md" {
		t.Errorf("%+v", m.Attachments)
	}
	note := press("bob", ideas, "a darker dark mode")
	g.click("bob", note.ID, note.CustomIDs()[0])
	g.message("the task", func(m discordsim.Message) bool {
		return m.Flags&discordsim.FlagEphemeral != 0 && strings.Contains(m.Text(), "from it: Ideas")
	})
	// Who may not see the project is told nothing of its notes.
	private := false
	if _, err := operations.EditProject.Call(t.Context(), g.app.Service.Operations(), g.by("ada"), operations.ProjectChanges{ID: "web-app", Shared: &private}); err != nil {
		t.Fatal(err)
	}
	press("bob", ideas, "not found")
	for i := range 25 {
		writes(fmt.Sprintf("Note %d", i), "x")
	}
	list("The 20 most recently changed; `/note list` shows all 27", 20)
}

// TestWorkGuide does what the guide says.
func TestWorkGuide(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "guides", "work-on-discord.md"))
	if err != nil {
		t.Fatal(err)
	}
	g := inWork(t, discordsim.Options{}, map[string]string{})
	lines := readGuide(t, string(data))
	if len(lines) == 0 {
		t.Fatal("the guide has no example")
	}
	for _, l := range lines {
		got := l.do(g.guildT)
		for _, w := range l.want {
			if !strings.Contains(got, w) {
				t.Errorf("docs/guides/work-on-discord.md:%d: %s says %q and is answered %q, without %q", l.line, l.who, l.words, got, w)
			}
		}
	}
}

// The commands of every group are there, and one of each group about work is carried out, with values that are suggested.
func TestWorkCommandsInTheList(t *testing.T) {
	t.Parallel()
	g := inWork(t, discordsim.Options{}, map[string]string{})
	for _, name := range []string{"memory", "skill", "schedule", "hook", "process", "project", "task", "repo", "git", "note", "worker", "system"} {
		if err := g.WaitCommand(g.soon(), "chorus", name); err != nil {
			t.Errorf("/%s: %v", name, err)
		}
	}
	task := g.task("Add a dark mode")
	g.commandShows("bob", "project list", nil, "web-app")
	g.commandShows("bob", "task list", nil, task.ID)
	g.commandShows("bob", "note list", nil, "There are no notes")
	if got := g.choices("bob", "task show", "task", "dark"); len(got) != 1 || !strings.Contains(got[0], "Add a dark mode") {
		t.Errorf("/task show suggests %q", got)
	}
	if got := g.choices("bob", "project show", "project", "web"); len(got) != 1 || !strings.Contains(got[0], "Web App") {
		t.Errorf("/project show suggests %q", got)
	}
}
