package discordtest

import (
	"fmt"
	"strings"
	"testing"

	"chorus/internal/operations"
	"chorus/internal/sim/discordsim"
)

// What a task says could not be changed where people look at it.
func TestWorkTextIsEdited(t *testing.T) {
	t.Parallel()
	g := inWork(t, discordsim.Options{}, map[string]string{})
	task := g.task("Add a dark mode")
	g.moves(task.ID, "", begun...)
	g.clicks("ada", g.card(task.ID, "is being worked on", "stop"), "stop")
	card := g.card(task.ID, "is blocked", "restart", "skip", "diff", "error", "edit")
	edit := fmt.Sprintf("c1:edit:edit:%s:1", task.ID)
	i, err := g.Click("ada", card.ID, edit)
	if err != nil {
		t.Fatal(err)
	}
	before, err := g.queue().Task(t.Context(), task.ID)
	if err != nil {
		t.Fatal(err)
	}
	if form := string(g.answered("the button", i).Modal); !strings.Contains(form, `"value":`+toJSON(t, before.Description)) {
		t.Errorf("the form is %s, without %q", form, before.Description)
	}
	sent, err := g.Submit("ada", edit, map[string]string{"text": "Only the page of settings gets a switch."})
	if err != nil {
		t.Fatal(err)
	}
	g.answered("the words", sent)
	g.until("the task has the new words", func() bool {
		now, err := g.queue().Task(t.Context(), task.ID)
		return err == nil && now.Description == "Only the page of settings gets a switch."
	})
	g.message("word to ada", func(m discordsim.Message) bool {
		return m.Flags&discordsim.FlagEphemeral != 0 && strings.Contains(m.Text(), "starts from this text")
	})
}

// A card said Approve to everybody: only a press told whose yes counts.
func TestWorkCardSaysWhoMay(t *testing.T) {
	t.Parallel()
	g := inWork(t, discordsim.Options{}, map[string]string{})
	if _, err := operations.EditProject.Call(t.Context(), g.app.Service.Operations(), g.by("ada"), operations.ProjectChanges{ID: "web-app", Approvers: "discord:" + g.User("ada").String()}); err != nil {
		t.Fatal(err)
	}
	task := g.task("Add a dark mode")
	g.moves(task.ID, "", done...)
	card := g.card(task.ID, "waits for approval", "approve", "reject", "diff")
	if want := "Only <@" + g.User("ada").String() + "> may approve."; !strings.Contains(card.Text(), want) {
		t.Errorf("the card says %q", card.Text())
	}
	g.clicks("bob", card, "approve")
	g.message("word to bob", func(m discordsim.Message) bool {
		return m.Flags&discordsim.FlagEphemeral != 0 && strings.Contains(m.Text(), "ask one of them")
	})
}
