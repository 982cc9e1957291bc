package participants_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"chorus/internal/model/anthropic"
	"chorus/internal/model/catalog"
	"chorus/internal/participants"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestExamples are the document's three examples as Anthropic would get them. They may
// differ from the document in three ways: there is no empty assistant turn, pictures
// stand in a turn of the user's, and names are always kept.
func TestExamples(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/example*.json")
	if err != nil {
		t.Fatal(err)
	}
	done := 0
	for _, file := range files {
		if strings.Contains(file, ".golden.") {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, mode := range []participants.Mode{participants.Prefill, participants.Chat} {
			done++
			golden(t, strings.TrimSuffix(file, ".json")+"."+string(mode)+".golden.json", body(t, data, mode))
		}
	}
	if done != 6 {
		t.Errorf("%d files were compared, want 6", done)
	}
}

func body(t *testing.T, data []byte, mode participants.Mode) []byte {
	t.Helper()
	doc, err := participants.ParseDocument(data)
	if err != nil {
		t.Fatal(err)
	}
	r, err := doc.Request()
	if err != nil {
		t.Fatal(err)
	}
	bot, err := doc.Bot()
	if err != nil {
		t.Fatal(err)
	}
	entry, _ := catalog.Lookup("anthropic", r.Model)
	p, err := participants.Style{Mode: mode, Bot: bot}.Wrap(anthropic.New(anthropic.Options{APIKey: "test-key"}), entry).Prepare(r)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, p.Body, "", "  "); err != nil {
		t.Fatal(err)
	}
	out.WriteByte('\n')
	return out.Bytes()
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s: got\n%s", file, got)
	}
}

func TestParseDocument(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{`{"mesages":[]}`, `unknown field "mesages"; did you mean "messages"?`},
		{`{"messages":[{"participant":"A","content":[{"type":"text","txt":"x"}]}]}`, `unknown field "txt"; did you mean "text"?`},
		{`{"config":{"max_tokens":1}}`, `did you mean "maxTokens"?`},
		{"{\n\"messages\":[}", "line 2"},
		{`{} {}`, "extra text after"},
		{`{"messages":[{"participant":"A","content":[{"type":"video"}]}],"botName":"C"}`, `message 1 of A: unknown type "video"`},
		{`{"messages":[{"participant":"A","content":[{"type":"image","source":{"type":"url","data":"https://example.org/x.png"}}]}],"botName":"C"}`, "nothing is fetched"},
		{`{"messages":[{"participant":"A","content":[{"type":"image","source":{"type":"base64","data":"!"}}]}],"botName":"C"}`, "not base64"},
		{`{"messages":[{"participant":"A","content":[{"type":"tool_result"}]}],"botName":"C"}`, "toolUseId"},
		{`{"messages":[{"content":"x"}],"botName":"C"}`, "no participant"},
		{`{"messages":[{"participant":"A","content":"x"}]}`, `Add "botName"`},
		{`{"messages":7}`, "cannot unmarshal"},
	} {
		doc, err := participants.ParseDocument([]byte(c.in))
		if err == nil {
			_, err = doc.Request()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.in, err, c.want)
		}
	}
}

func FuzzDocument(f *testing.F) {
	for i := range 3 {
		data, err := os.ReadFile(filepath.Join("testdata", "example"+string(rune('1'+i))+".json"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := participants.ParseDocument(data)
		if err != nil {
			return
		}
		r, err := doc.Request()
		if err != nil {
			return
		}
		bot, _ := doc.Bot()
		for _, mode := range []participants.Mode{participants.Prefill, participants.Chat} {
			p, err := participants.Style{Mode: mode, Bot: bot}.Wrap(anthropic.New(anthropic.Options{}), catalog.Unknown("anthropic", "x")).Prepare(r)
			if err == nil && !json.Valid(p.Body) {
				t.Errorf("no JSON came of %s: %s", data, p.Body)
			}
		}
	})
}
