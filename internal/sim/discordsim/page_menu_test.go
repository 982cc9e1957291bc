package discordsim

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"chorus/internal/sim/discordsim/guild"
)

// Typing / showed nothing, and nobody saw what a bot had sent.
func TestPageOffersCommandsAndShowsRequests(t *testing.T) {
	t.Parallel()
	s := StartT(t, Options{TimeScale: slowTime, People: []guild.PersonSpec{{Name: "bob"}, {Name: "ada", Owner: true}}}) // bob manages nothing
	ctx := browser(t)
	bot, _ := identified(t, s, "chorus", talkative)
	option := func(name string, kind int, more object) object {
		o := object{"name": name, "type": kind, "description": "about " + name}
		for k, v := range more {
			o[k] = v
		}
		return o
	}
	status, body, _ := ask(t, s, "chorus", "PUT", "/applications/"+s.User("chorus").String()+"/commands", []object{
		{"name": "tea", "description": "Make tea", "options": []object{option("pour", 1, object{"options": []object{
			option("kind", 3, object{"required": true, "autocomplete": true}), option("sugar", 5, nil), option("size", 3, object{"choices": []object{{"name": "A small cup", "value": "small"}}})}})}},
		{"name": "table", "description": "Lay the table"},
		{"name": "close", "description": "Close the house", "default_member_permissions": guild.PermManageGuild}})
	if status != 200 {
		t.Fatalf("%d %v", status, body)
	}
	css := func(s string) chromedp.CSS { return chromedp.CSS(s) }
	text := func(s string) string { t.Helper(); return must[string](t)(chromedp.Run(ctx, chromedp.Text(css(s)))) }
	line := func() string {
		t.Helper()
		return must[string](t)(chromedp.Run(ctx, chromedp.Evaluate[string](`document.getElementById("text").value`)))
	}
	keys := func(text string) { t.Helper(); ok(t, chromedp.Do(ctx, chromedp.SendKeys(css(`#text`), text))) }
	ok(t, chromedp.Do(ctx, chromedp.Navigate(s.URL()+"/"), chromedp.WaitVisible(css(`#channels button[aria-current]`))))
	keys("/")
	if got := text(`#menu`); !strings.Contains(got, "/table") || !strings.Contains(got, "Make tea") || strings.Contains(got, "/close") {
		t.Errorf("the menu is %q", got)
	}
	keys("tea\tpo\tki\t") // each tab takes what is proposed
	var asked struct {
		ID    guild.ID `json:"id"`
		Token string   `json:"token"`
		Data  object   `json:"data"`
	}
	ok(t, json.Unmarshal(bot.until("INTERACTION_CREATE").D, &asked)) // values are proposed before anything of one is typed
	keys("gr")
	for !strings.Contains(string(must[[]byte](t)(json.Marshal(asked.Data))), `"value":"gr"`) { // of what was typed before
		ok(t, json.Unmarshal(bot.until("INTERACTION_CREATE").D, &asked))
	}
	answer := func(kind int, data object) {
		t.Helper()
		if status, body, _ := ask(t, s, "chorus", "POST", "/interactions/"+asked.ID.String()+"/"+asked.Token+"/callback", object{"type": kind, "data": data}); status != 204 {
			t.Fatalf("callback: %d %v", status, body)
		}
	}
	answer(replyChoices, object{"choices": []object{{"name": "Green tea", "value": "green"}}})
	ok(t, chromedp.Do(ctx, chromedp.WaitVisible(css(`#menu-0`))))
	keys("\t")
	if got := line(); got != "/tea pour kind:green " {
		t.Fatalf("the line is %q", got)
	}
	keys("size:\t\r")
	ok(t, json.Unmarshal(bot.until("INTERACTION_CREATE").D, &asked))
	for asked.Data["name"] != "tea" || !strings.Contains(string(must[[]byte](t)(json.Marshal(asked.Data))), `"small"`) {
		ok(t, json.Unmarshal(bot.until("INTERACTION_CREATE").D, &asked))
	}
	answer(replyMessage, object{"flags": guild.FlagComponentsV2, "components": []object{{"type": 17, "components": []object{{"type": 10, "content": "poured"}}}}})
	ok(t, chromedp.Do(ctx, chromedp.WaitVisible(css(`article[data-author=chorus] .container`))))
	must[bool](t)(chromedp.Run(ctx, chromedp.Evaluate[bool](`document.querySelector("article[data-author=chorus] .tools button[title^=Inspect]").click(), true`)))
	ok(t, chromedp.Do(ctx, chromedp.WaitVisible(css(`#inspector details`))))
	if got := text(`#inspector`); !strings.Contains(got, "/callback") || !strings.Contains(got, `"content": "poured"`) || !strings.Contains(got, "204") {
		t.Errorf("the inspector shows %q", got)
	}
}

// What the inspector shows of a message is what was sent about it, also what was refused and what got no answer.
func TestCallsAreKept(t *testing.T) {
	t.Parallel()
	s := StartT(t, Options{NoRateLimits: true})
	general := "/channels/" + s.Channel("general").String() + "/messages"
	_, made, _ := ask(t, s, "chorus", "POST", general, object{"content": "first"})
	id, err := guild.ParseID(made["id"].(string))
	ok(t, err)
	ask(t, s, "chorus", "PATCH", general+"/"+id.String(), object{"content": strings.Repeat("x", 2001)})
	ask(t, s, "chorus", "PATCH", general+"/"+id.String(), object{"content": "second"})
	ask(t, s, "chorus", "GET", general+"/"+id.String(), nil)
	ask(t, s, "ada", "POST", general, object{"content": "a person's"})
	calls := s.Calls(id)
	if len(calls) != 3 || len(s.Calls(0)) != 3 || calls[0].Status != 200 || calls[1].Status != 400 || !strings.Contains(string(calls[1].Response), "50035") || string(calls[2].Request) != `{"content":"second"}` {
		t.Errorf("%+v", calls)
	}
}
