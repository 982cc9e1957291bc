package discordsim

import (
	"context"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"chorus/internal/sim/discordsim/guild"
)

// browser is a Chromium for one test; without one the test is skipped, and says so.
func browser(t *testing.T) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		if path, err = exec.LookPath("google-chrome"); err != nil {
			t.Skip("SKIPPED: there is no Chromium here, so nobody looks at the page")
		}
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()), chromedp.WSURLReadTimeout(longestWait))
	alloc, stop := chromedp.NewExecAllocator(within(t), opts...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(alloc)
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // waits for the browser, which may have ended
		cancel()
	})
	return ctx
}

// TestPageHoldsAConversation is a person in a browser and a bot on the wire.
func TestPageHoldsAConversation(t *testing.T) {
	t.Parallel()
	s := StartT(t, Options{TimeScale: slowTime})
	ctx := browser(t)
	bot, _ := identified(t, s, "chorus", talkative)
	css := func(s string) chromedp.CSS { return chromedp.CSS(s) }
	text := func(s string) string { t.Helper(); return must[string](t)(chromedp.Run(ctx, chromedp.Text(css(s)))) }
	general := "/channels/" + s.Channel("general").String() + "/messages"
	ok(t, chromedp.Do(ctx, chromedp.Navigate(s.URL()+"/"), chromedp.WaitVisible(css(`#channels button[aria-current]`)),
		chromedp.SendKeys(css(`#text`), "hello @chorus <b>not bold</b>\r")))
	var said guild.Message
	ok(t, json.Unmarshal(bot.until("MESSAGE_CREATE").D, &said))
	if said.Author.Username != "ada" || !strings.HasPrefix(said.Content, "hello <@"+s.User("chorus").String()+">") {
		t.Fatalf("the page said %+v", said)
	}
	status, _, _ := ask(t, s, "chorus", "POST", general, object{"content": "**Shall I?**\n> one\n> two\n-# until <t:86400:d> in <#" + s.Channel("general").String() + ">\n- a point", "message_reference": object{"message_id": said.ID},
		"embeds":     []object{{"title": "Plan", "description": "one step"}},
		"components": []object{{"type": 1, "components": []object{{"type": 2, "style": 3, "label": "Yes", "custom_id": "yes"}}}}})
	if status != 200 {
		t.Fatalf("status %d", status)
	}
	embed, content := text(`article[data-author=chorus] .embed`), text(`article[data-author=ada] .content`)
	bold := must[int](t)(chromedp.Run(ctx, chromedp.Evaluate[int](`document.querySelectorAll("article[data-author=ada] .content b").length`)))
	if content != "hello @chorus <b>not bold</b>" || bold != 0 || !strings.Contains(embed, "one step") {
		t.Fatalf("the page shows %q (%d bold) and %q", content, bold, embed)
	}
	shown := `article[data-author=chorus] .content `
	quote, small, item := text(shown+"blockquote"), text(shown+".small"), text(shown+".item")
	if quote != "one\ntwo" || !strings.HasPrefix(small, "until January") || !strings.HasSuffix(small, "in #general") || item != "a point" {
		t.Errorf("Markdown is shown as %q, %q and %q", quote, small, item)
	}
	ok(t, chromedp.Do(ctx, chromedp.Click(css(`button[data-custom-id=yes]`))))
	answer := func(kind int, data object) (sent string) {
		t.Helper()
		var i struct {
			ID    guild.ID        `json:"id"`
			Token string          `json:"token"`
			Data  json.RawMessage `json:"data"`
		}
		ok(t, json.Unmarshal(bot.until("INTERACTION_CREATE").D, &i))
		if status, body, _ := ask(t, s, "chorus", "POST", "/interactions/"+i.ID.String()+"/"+i.Token+"/callback", object{"type": kind, "data": data}); status != 204 {
			t.Fatalf("callback: %d %v", status, body)
		}
		return string(i.Data)
	}
	answer(replyModal, object{"custom_id": "form", "title": "Why", "components": []object{
		{"type": 18, "label": "Reason", "component": object{"type": 4, "style": 1, "custom_id": "reason"}},
		{"type": 18, "label": "Size", "component": object{"type": 3, "custom_id": "size", "options": []object{{"label": "small", "value": "S"}, {"label": "large", "value": "L"}}}},
		{"type": 18, "label": "Color", "component": object{"type": 3, "custom_id": "color", "required": false, "options": []object{{"label": "red", "value": "red"}}}}}})
	ok(t, chromedp.Do(ctx, chromedp.WaitVisible(css(`#modal input[name=reason]`)), chromedp.SendKeys(css(`#modal input[name=reason]`), "because"),
		chromedp.Click(css(`#modal button[value=send]`)))) // which the browser refuses: a size must be chosen
	must[bool](t)(chromedp.Run(ctx, chromedp.Evaluate[bool](`document.querySelector("#modal select[name=size]").value = "L", true`)))
	ok(t, chromedp.Do(ctx, chromedp.Click(css(`#modal button[value=send]`))))
	if sent := answer(replyMessage, object{"content": "thank you", "flags": guild.FlagEphemeral}); !strings.Contains(sent, `"values":["L"]`) || !strings.Contains(sent, `"values":[]`) || !strings.Contains(sent, `"value":"because"`) {
		t.Errorf("the form sends %s", sent)
	}
	if note := text(`article.ephemeral .note`); note != "Only you can see this" {
		t.Fatalf("the note says %q", note)
	}
	must[bool](t)(chromedp.Run(ctx, chromedp.Evaluate[bool](`document.querySelector("article .tools button").click(), true`)))
	ok(t, chromedp.Do(ctx, chromedp.WaitVisible(css(`.reactions .me`))))
}
