package approvalcard

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"chorus/internal/chat"
	"chorus/internal/platform"
	"chorus/internal/room/render"
	"chorus/internal/room/split"
)

var discord = Writer{Platform: "discord", Caps: platform.Caps{Label: "Discord", MaxText: 2000, Reactions: true, Buttons: true}}

// A card is a message of the platform's whatever it asks for.
func TestCardsFit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := render.Card{
			Tool: rapid.StringN(0, 40, 60).Draw(t, "tool"), Actions: rapid.SliceOfN(rapid.StringN(0, 400, 800), 0, 8).Draw(t, "actions"),
			Preview: rapid.StringN(0, 2000, 4000).Draw(t, "preview"), Rule: rapid.StringN(0, 300, 600).Draw(t, "rule"), Unbound: rapid.StringN(0, 500, 900).Draw(t, "unbound"),
			Open: rapid.Bool().Draw(t, "open"), OK: rapid.Bool().Draw(t, "ok"), Note: rapid.StringN(0, 500, 900).Draw(t, "note"),
			By:  rapid.SampledFrom([]string{"", "discord:1", "discord:1 and discord:2", "local:ada"}).Draw(t, "by"),
			Who: rapid.SampledFrom([]string{"", "two", "asker"}).Draw(t, "who"), FirstYes: rapid.SampledFrom([]string{"", "discord:1"}).Draw(t, "first"),
		}
		text, clipped := discord.Text(c, "7")
		if n := split.Length(text); n == 0 || n > 2000 {
			t.Fatalf("a card of %d characters", n)
		}
		if whole := plainActions(c.Tool, c.Actions); !clipped && !strings.Contains(strings.ReplaceAll(text, "\n> ", "\n"), strings.TrimSpace(whole)) {
			t.Fatalf("a card that is not whole says so: %q of %q", text, whole)
		}
	})
}

// Everything at its longest is still one message, and who may answer stands in it: the preview gives way.
func TestTheLongestCardFits(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("all at once ", 200)
	c := render.Card{Tool: long, Actions: []string{long, long}, Preview: long, Rule: "tool:mine:.*", Unbound: long, Why: long, Open: true, Who: "two", FirstYes: "discord:1", Until: time.Unix(1795000000, 0),
		Assessment: chat.Assessment{Risk: "high", RiskWhy: long}}
	text, clipped := Writer{Platform: "discord", Caps: platform.Caps{MaxText: 2000, Reactions: true, Buttons: true, Forms: true}}.Text(c, "7")
	if n := split.Length(text); n > 2000 || !clipped || !strings.HasSuffix(text, "reply yes, no or what to do instead.") {
		t.Errorf("%d characters, clipped %t:\n%s", n, clipped, text)
	}
}

// What is on a card is what would be done: no mark of Discord's eats a part of it or hides
// it, and no character turns the others round.
func TestCardsHideNothing(t *testing.T) {
	t.Parallel()
	for _, action := range []string{"tool:bash:rm a*b*", "tool:bash:true ||rm -rf .||", "tool:bash:[ls](https://x.invalid)", "tool:bash:~~not~~ this", "tool:bash:echo _a_b"} {
		text, clipped := discord.Text(render.Card{Tool: "bash", Actions: []string{action}, Rule: "tool:bash:.*", Open: true}, "7")
		if !strings.Contains(text, "```\n"+strings.TrimPrefix(action, "tool:bash:")+"\n```") || clipped || !strings.Contains(text, "Rule: shell commands") {
			t.Errorf("%q is shown as %q, %v", action, text, clipped)
		}
	}
	for action, want := range map[string]string{"tool:bash:rm \u202ea\u202c": `rm \u{202e}a\u{202c}`, "tool:bash:a\u200bb": `a\u{200b}b`, "tool:bash:```\n**yes**": "'''\n**yes**\n```"} {
		text, clipped := discord.Text(render.Card{Tool: "bash", Actions: []string{action}, Open: true}, "7")
		if !strings.Contains(text, want) || !clipped {
			t.Errorf("%q is shown as %q, %v", action, text, clipped)
		}
	}
}

func TestPeopleAreMentioned(t *testing.T) {
	t.Parallel()
	if got := discord.People("discord:12 and local:ada"); got != "<@12> and local:ada" {
		t.Errorf("%q", got)
	}
}

// A question says whose answer counts.
func TestQuestionsNameWhoMayAnswer(t *testing.T) {
	t.Parallel()
	text, _ := discord.Text(render.Card{Actions: []string{"question:shop"}, Preview: "Which size?", Open: true, Who: "asker"}, "7")
	if want := "Who can answer: <@7>"; !strings.Contains(text, want) {
		t.Errorf("the card says %q", text)
	}
}
