package discord

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"pgregory.net/rapid"

	"chorus/internal/connector/approvalcard"
	"chorus/internal/npmtest"
	"chorus/internal/platform"
	"chorus/internal/room/render"
	"chorus/internal/room/split"
	"chorus/internal/sim/discordsim/apierror"
	rules "chorus/internal/sim/discordsim/components"
	"chorus/internal/work"
	"chorus/internal/workview"
)

// words draws a text that is sometimes longer than anything has room for.
func words(most int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		piece := rapid.SampledFrom([]string{"", " ", "\n", "a", "word ", "```\ncode\n", "**bold** ", "line\n", "👩‍🚀", "é", "<@1> ", "`x`", "\u200b"})
		return strings.Repeat(piece.Draw(t, "piece"), rapid.IntRange(0, most).Draw(t, "times")) + strings.Join(rapid.SliceOfN(piece, 0, 5).Draw(t, "end"), "")
	})
}

func value() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return platform.ButtonValue(rapid.SampledFrom([]string{platform.PressTask, platform.PressNote, platform.PressHalt}).Draw(t, "press"), rapid.StringN(1, 110, 220).Draw(t, "id"))
	})
}

func someButton(t *rapid.T) platform.Button {
	return platform.Button{Label: words(100).Draw(t, "label"), Value: value().Draw(t, "value"), Style: rapid.SampledFrom([]platform.Style{"", platform.Yes, platform.Danger}).Draw(t, "style")}
}

func choice(t *rapid.T) platform.Choice {
	return platform.Choice{Label: words(120).Draw(t, "label"), Value: rapid.OneOf(rapid.SampledFrom([]string{"a", "b", ""}), rapid.StringN(0, 110, 220)).Draw(t, "value")}
}

func list[T any](t *rapid.T, name string, most int, one func(*rapid.T) T) []T {
	return rapid.SliceOfN(rapid.Custom(one), 0, most).Draw(t, name)
}

func post(t *rapid.T) platform.Post {
	b := func(name string) bool { return rapid.Bool().Draw(t, name) }
	p := platform.Post{Text: words(5000).Draw(t, "text"), More: list(t, "more", 30, someButton), Always: b("always"), Reason: b("reason"), Words: b("words"),
		Panel: rapid.SampledFrom([]platform.Panel{"", platform.PanelAsk, platform.PanelYes, platform.PanelNo, platform.PanelOver, platform.PanelWork}).Draw(t, "panel")}
	for _, id := range []*string{&p.Card, &p.Details, &p.Stop} {
		if b("id") {
			*id = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
		}
	}
	return p
}

func answer(t *rapid.T) platform.Answer {
	return platform.Answer{Text: words(1000).Draw(t, "text") + "x", Panel: rapid.Bool().Draw(t, "panel"), Buttons: list(t, "buttons", 12, someButton), Selects: list(t, "selects", 7, func(t *rapid.T) platform.Select {
		return platform.Select{Value: value().Draw(t, "value"), Hint: words(200).Draw(t, "hint"), Choices: list(t, "choices", 30, choice)}
	})}
}

func form(t *rapid.T) platform.Form {
	f := platform.Form{Title: words(60).Draw(t, "title"), Label: words(60).Draw(t, "label"), Hint: words(150).Draw(t, "hint"), Value: words(5000).Draw(t, "value"), Max: rapid.SampledFrom([]int{1, 1000, 4000, 9000}).Draw(t, "max")}
	f.Fields = list(t, "fields", 7, func(t *rapid.T) platform.FormField {
		return platform.FormField{Label: words(60).Draw(t, "label"), Hint: words(150).Draw(t, "hint"), Choices: list(t, "choices", 30, choice), Several: rapid.Bool().Draw(t, "several"),
			Optional: rapid.Bool().Draw(t, "optional"), Values: rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 3).Draw(t, "values")}
	})
	for i := range f.Fields {
		f.Fields[i].Name = fmt.Sprintf("field%d", i)
	}
	return f
}

// payload is something that Discord is sent.
type payload struct {
	Kind string `json:"kind"`
	Data any    `json:"data"`
}

// sent are payloads of everything that can be shown, drawn at random: cards, answers to commands, forms and proposals.
func sent(t *rapid.T) []payload {
	p, a := post(t), answer(t)
	entry := p
	entry.Entry = &platform.Entry{}
	list := []payload{{"message", components(p)}, {"message", marked(entry, "nonce")}, {"message", answerParts(a)}, {"message", answerPanel(a)}, {"modal", modal("c1:words:1", form(t))}, {"proposals", proposals(list(t, "proposals", 30, choice))}}
	return append(list, payload{"message", components(approvalPost(t))}, payload{"message", components(taskPost(t))})
}

func units(s string) int { return len(utf16.Encode([]rune(s))) }

// approvalPost is the card of an approval, with whatever a tool, a rule or an MCP server says.
func approvalPost(t *rapid.T) platform.Post {
	card := render.Card{Approval: "01ARZ3NDEKTSV4RRFFQ69G5FAV", Tool: words(80).Draw(t, "tool"), Actions: rapid.SliceOfN(words(900), 1, 20).Draw(t, "actions"), Rule: words(400).Draw(t, "rule"), Preview: words(3000).Draw(t, "preview"),
		Unbound: words(500).Draw(t, "unbound"), Why: words(500).Draw(t, "why"), Note: words(500).Draw(t, "note"), Until: time.Unix(1795000000, 0), Who: rapid.SampledFrom([]string{"", "two", "asker"}).Draw(t, "who"),
		Open: rapid.Bool().Draw(t, "open"), OK: rapid.Bool().Draw(t, "ok"), By: rapid.SampledFrom([]string{"", "discord:1", "local:ada"}).Draw(t, "by")}
	if rapid.Bool().Draw(t, "question") {
		card.Actions = []string{"question:" + card.Actions[0]}
	}
	w := approvalcard.Writer{Platform: "discord", Caps: platform.Caps{Buttons: true, Forms: true, Reactions: true, MaxPanel: maxPanelText}}
	text, _ := w.Text(card, "1")
	if n := split.Length(text); n > maxText {
		t.Fatalf("an approval of %d characters would lose who may answer it", n)
	}
	return platform.Post{Text: text, Panel: w.Panel(card), Card: card.Approval, Always: true, Reason: true, Details: card.Approval}
}

// taskPost is the card of a task.
func taskPost(t *rapid.T) platform.Post {
	f := workview.Facts{Task: work.Task{ID: "a7c1f2", Title: words(300).Draw(t, "title"), Why: words(3000).Draw(t, "why"), State: rapid.SampledFrom([]work.State{work.Defined, work.Ready, work.InProgress, work.Blocked, work.Completed, work.AwaitingApproval}).Draw(t, "state")},
		Result: &work.Result{Summary: words(4000).Draw(t, "summary")}}
	card := workview.Of(f)
	if n := split.Length(card.Text); n > maxPanelText {
		t.Fatalf("the card of a task has %d characters", n)
	}
	return platform.Post{Text: card.Text, Panel: platform.PanelWork}
}

// Whatever a person, a model or an MCP server calls something, what is sent is within Discord's limits: it would refuse the whole message.
func TestNothingIsTooLongForDiscord(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		for _, p := range sent(t) {
			data, err := json.Marshal(p.Data)
			if err != nil {
				t.Fatal(err)
			}
			if err := refused(p.Kind, data); err != nil {
				t.Fatalf("%s: %v\n%.3000s", p.Kind, err, data)
			}
		}
	})
}

// refused is what Discord would say.
func refused(kind string, data []byte) error {
	f := &apierror.Form{}
	switch kind {
	case "modal":
		var form map[string]any
		if err := json.Unmarshal(data, &form); err != nil {
			return err
		}
		return rules.CheckModal(form)
	case "proposals":
		var list []struct{ Name, Value string }
		if err := json.Unmarshal(data, &list); err != nil {
			return err
		}
		f.Between("choices", len(list), 0, 25)
		for i, c := range list {
			f.Between(apierror.Item("choices", i)+".name", units(c.Name), 1, 100)
			f.Between(apierror.Item("choices", i)+".value", units(c.Value), 1, 100)
		}
	case "message":
		var list []map[string]any
		if err := json.Unmarshal(data, &list); err != nil {
			return err
		}
		v2 := len(list) > 0 && list[0]["type"] != float64(rules.KindRow)
		rules.Check(f, list, v2)
	}
	return f.Err()
}

// What is within the limits is sent as it is.
func TestWhatFitsIsNotChanged(t *testing.T) {
	t.Parallel()
	p := platform.Post{Text: strings.Repeat("a", 4000), Panel: platform.PanelAsk, More: []platform.Button{{Label: strings.Repeat("b", 80), Value: strings.Repeat("c", 100)}}}
	data, err := json.Marshal(components(p))
	if err != nil || !strings.Contains(string(data), p.Text) || !strings.Contains(string(data), p.More[0].Label) || !strings.Contains(string(data), p.More[0].Value) {
		t.Errorf("%.300s, %v", data, err)
	}
	f := platform.Form{Title: strings.Repeat("t", 45), Fields: []platform.FormField{{Name: "size", Label: strings.Repeat("l", 45), Hint: strings.Repeat("h", 100), Choices: []platform.Choice{{Label: "", Value: "s"}, {Label: "Medium", Value: "m"}, {Label: "again", Value: "m"}}, Values: []string{"m"}}}}
	data, err = json.Marshal(modal("c1:words:1", f))
	for _, want := range []string{f.Title, f.Fields[0].Label, f.Fields[0].Hint, `"label":"s"`, `{"label":"Medium","value":"m","default":true}`} {
		if err != nil || !strings.Contains(string(data), want) {
			t.Errorf("%q is not in %s, %v", want, data, err)
		}
	}
	if strings.Contains(string(data), "again") {
		t.Errorf("a value stands twice in %s", data)
	}
}

// The builders of discord.js, which know Discord's rules themselves, take everything that is sent.
func TestDiscordJSTakesWhatIsSent(t *testing.T) {
	t.Parallel()
	dir := npmtest.Install(t, "discord.js@14.27.0")
	var lines bytes.Buffer
	encode := json.NewEncoder(&lines)
	made := 0
	drawn := rapid.Custom(sent)
	for seed := range 60 {
		for _, p := range drawn.Example(seed) {
			made++
			if err := encode.Encode(p); err != nil {
				t.Fatal(err)
			}
		}
	}
	cmd := exec.CommandContext(t.Context(), "node", "testdata/builders.mjs")
	cmd.Env, cmd.Stdin = append(os.Environ(), "MODULES="+dir), &lines
	out, err := cmd.CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != fmt.Sprintf("seen %d", made) {
		t.Errorf("%v\n%.5000s", err, out)
	}
}
