package savedcontext

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"chorus/internal/chat"
)

const room = chat.ThreadID("discord:g/1:a@main")

// adas returns what Ada said: some messages in the room, as events from 10 on.
func adas(messages ...string) *Said {
	s := NewSaid(chat.Principal{Kind: "discord", ID: "42"})
	s.Name("ada")
	s.Name("Ada L. (she) [*]")
	for i, m := range messages {
		s.Event(room, int64(10+i))
		s.Text(m)
	}
	return s
}

func by(id, name, text string) savedMessage {
	return savedMessage{ID: 99, Thread: room, Role: "user", Content: text, From: chat.Participant{ID: id, Name: name, Kind: chat.Person}, Blocks: chat.TextBlocks(text)}
}

func tool(text string) savedMessage {
	m := by("", "", text)
	m.Role, m.From, m.Blocks = "tool", chat.Participant{Kind: chat.System}, chat.Blocks{chat.ToolResult{Call: "c", Blocks: chat.TextBlocks(text)}}
	return m
}

func answer(text string) savedMessage {
	m := by("", "", text)
	m.Role, m.From = "assistant", chat.Participant{Kind: chat.Agent}
	return m
}

func TestSavedContextsHoldWhatSomebodySaid(t *testing.T) {
	t.Parallel()
	const long = "please move the meeting with <Dr. Fischer> & Sons to \"Friday\""
	lines := "the first line of it\nand the second line, which is longer"
	essay := strings.Repeat("every word of this is mine ", 30)
	for name, c := range map[string]struct {
		said []string
		file savedFile
		want bool
	}{
		// Who wrote it.
		"their event":                      {[]string{"ok"}, savedFile{Messages: []savedMessage{{ID: 10, Thread: room, Role: "user", Content: "ok"}}}, true},
		"their event, edited since":        {[]string{"ok"}, savedFile{Messages: []savedMessage{{ID: 10, Thread: room, Role: "user", Content: "no"}}}, true},
		"that number of another thread":    {[]string{"ok"}, savedFile{Messages: []savedMessage{{ID: 10, Thread: room + "x", Role: "user", Content: "ok"}}}, false},
		"their line of an import":          {nil, savedFile{Messages: []savedMessage{by("42", "whoever", "hm")}}, true},
		"somebody with that id elsewhere":  {nil, savedFile{Messages: []savedMessage{{ID: 99, Thread: "linechat:g/1:a@main", Role: "user", From: chat.Participant{ID: "42"}}}}, false},
		"in a fork on the web":             {nil, savedFile{Messages: []savedMessage{{ID: 1, Thread: "web:main:f@main", Role: "user", From: chat.Participant{ID: "42"}}}}, true},
		"an agent with that id":            {nil, savedFile{Messages: []savedMessage{{ID: 99, Thread: room, Role: "user", From: chat.Participant{ID: "42", Kind: chat.Agent}}}}, false},
		"from a file with names":           {[]string{"ok\nthen"}, savedFile{Messages: []savedMessage{by("", "ada", "ok\nthen")}}, true},
		"somebody else from such a file":   {[]string{"ok"}, savedFile{Messages: []savedMessage{by("", "bob", "ok")}}, false},
		"other words from such a file":     {[]string{"ok"}, savedFile{Messages: []savedMessage{by("", "ada", "okay then")}}, false},
		"nothing":                          {[]string{"ok", long}, savedFile{Messages: []savedMessage{by("43", "bob", "hello"), answer("hello, bob")}}, false},
		"their name alone":                 {[]string{"ok"}, savedFile{Messages: []savedMessage{by("43", "bob", "ada: hello")}}, false},
		"nobody said anything":             {nil, savedFile{Messages: []savedMessage{by("43", "bob", "hello ada")}}, false},
		"white space and signs are no key": {[]string{" ", "\n", "…"}, savedFile{Messages: []savedMessage{by("43", "bob", "a b… c")}}, false},

		// Short words that everybody uses.
		"the same word of others":     {[]string{"ok"}, savedFile{Messages: []savedMessage{by("43", "bob", "ok"), answer("ok, look at the book"), tool("ok")}, Summary: "ok", Description: "ok"}, false},
		"a letter":                    {[]string{"a"}, savedFile{Messages: []savedMessage{by("43", "bob", "plan a: a")}}, false},
		"a phrase":                    {[]string{"Thank you very much!"}, savedFile{Messages: []savedMessage{by("43", "bob", "thank you very much")}}, false},
		"a face":                      {[]string{"👍"}, savedFile{Messages: []savedMessage{by("43", "bob", "👍")}}, false},
		"a phrase in Chinese":         {[]string{"好的,谢谢"}, savedFile{Messages: []savedMessage{by("43", "bob", "好的,谢谢你")}}, false},
		"a command":                   {[]string{"/stop"}, savedFile{Messages: []savedMessage{tool("run /stop to end it")}}, false},
		"a word in a key of the file": {[]string{"message_count"}, savedFile{Messages: []savedMessage{by("43", "bob", "hi")}}, false},

		// Quotations.
		"quoted by somebody":          {[]string{long}, savedFile{Messages: []savedMessage{by("43", "bob", "> "+long+"\nsure")}}, true},
		"quoted in an answer":         {[]string{long}, savedFile{Messages: []savedMessage{answer("You wrote “Please move the meeting with Dr. Fischer\n   & Sons to Friday”.")}}, true},
		"quoted in a summary":         {[]string{long}, savedFile{Summary: "They said: " + long}, true},
		"quoted in a description":     {[]string{long}, savedFile{Description: strings.ToUpper(long)}, true},
		"in the arguments of a call":  {[]string{long}, savedFile{Messages: []savedMessage{{Blocks: chat.Blocks{chat.ToolUse{ID: "c", Name: "write", Args: jsonOf(map[string]any{"path": "x", "text": long})}}}}}, true},
		"in a result that is JSON":    {[]string{long}, savedFile{Messages: []savedMessage{tool(string(jsonOf(map[string]any{"said": "\u2028" + long + "😀"})))}}, true},
		"in a result that is a page":  {[]string{long}, savedFile{Messages: []savedMessage{tool("<p>please move the meeting with &lt;Dr. Fischer&gt; &amp; Sons to &quot;Friday&quot;</p>")}}, true},
		"lines that were indented":    {[]string{lines}, savedFile{Messages: []savedMessage{tool("> the first line of it\r\n> and the second line, which is longer\n")}}, true},
		"one of several lines":        {[]string{lines}, savedFile{Messages: []savedMessage{by("43", "bob", "and the second line, which is longer")}}, false},
		"the beginning of a long one": {[]string{essay}, savedFile{Messages: []savedMessage{tool(essay[:400] + "…")}}, true},
		"too little of a long one":    {[]string{essay}, savedFile{Messages: []savedMessage{tool(essay[:100] + "…")}}, false},
		"a part of it":                {[]string{long}, savedFile{Messages: []savedMessage{by("43", "bob", "the meeting with <Dr. Fischer>")}}, false},
		"a telephone number":          {[]string{"+44 7700 900123"}, savedFile{Messages: []savedMessage{answer("I call you under +44-7700-900123.")}}, true},
		"a number of an hour":         {[]string{"at 10:30"}, savedFile{Messages: []savedMessage{answer("It begins at 10:30.")}}, false},
		"a sentence in Chinese":       {[]string{"我住在柏林市中心十二号"}, savedFile{Messages: []savedMessage{answer("你说:“我住在柏林市中心十二号”。")}}, true},
		"only digits":                 {[]string{"1234567890"}, savedFile{Messages: []savedMessage{answer("1234567890")}}, true},
		"a long one of others":        {[]string{long}, savedFile{Messages: []savedMessage{by("43", "bob", essay)}}, false},

		// Lines with names.
		"an import in one message":  {[]string{"ok"}, savedFile{Messages: []savedMessage{by("43", "bob", "[from ada]: ok\n[from bob]: fine")}}, true},
		"what a search found":       {[]string{"ok"}, savedFile{Messages: []savedMessage{tool("2026-11-02 15:04 bob: so?\n2026-11-02 15:05 ada: ok\n  https://x")}}, true},
		"a list":                    {[]string{"👍"}, savedFile{Summary: "- [ada]: 👍"}, true},
		"a word that is a name":     {[]string{"yes"}, savedFile{Messages: []savedMessage{tool("ada: yes\nis it ada: yes")}}, false},
		"a name with signs":         {[]string{"ok"}, savedFile{Messages: []savedMessage{tool("[Ada L. (she) [*]]: OK!")}}, true},
		"somebody with such a name": {[]string{"ok"}, savedFile{Messages: []savedMessage{tool("[from granada]: ok\nnot ada: ok")}}, false},
		"the first line of several": {[]string{"ok\nbut not today"}, savedFile{Messages: []savedMessage{tool("[from ada]: ok\nbut not today")}}, true},
	} {
		data, err := json.MarshalIndent(c.file, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if got := adas(c.said...).in(data); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if !adas("ok").in([]byte(`{"messages": [`)) {
		t.Error("a damaged file may hold anything")
	}
	if adas("ok").in([]byte(`{"messages": [{"blocks": [{"type": "later"}]}]}`)) {
		t.Error("a file of a later version counts as damaged")
	}
}

func jsonOf(value any) json.RawMessage {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return data
}

// Whatever somebody says is found where it is theirs. It is found in words of others if it is long, and a short text never is.
func TestWhatIsSaidIsFound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		around := rapid.StringMatching(`[ .!\n]{0,9}`)
		quoted := around.Draw(t, "before") + text + around.Draw(t, "after")
		in := func(m savedMessage) bool {
			data, err := json.Marshal(savedFile{At: time.Unix(0, 0), Messages: []savedMessage{m}})
			if err != nil {
				t.Fatal(err)
			}
			return adas(text).in(data)
		}
		if mine := by("42", "ada", text); !in(mine) {
			t.Fatal("their own message is not found")
		}
		want := weight(letters(text)) >= quotable
		if got := in(by("43", "bob", quoted)); got != want {
			t.Fatalf("quoted as %q: %v, want %v", quoted, got, want)
		}
	})
}
