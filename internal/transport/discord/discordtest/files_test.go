package discordtest

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/connector"
	"chorus/internal/connector/host"
	"chorus/internal/model"
	"chorus/internal/sim/discordsim"
	"chorus/internal/transcript"
)

// aPicture is a small one.
func aPicture(t *testing.T) []byte {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, 8, 8))
	img.Set(1, 1, color.RGBA{R: 255, A: 255})
	var buf bytes.Buffer
	if err := png.Encode(&buf, img); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// asked are the messages of a thread's last request to its model.
func (g *guildT) asked(thread chat.ThreadID) []*model.Message {
	g.Helper()
	log := transcript.New(func(hash string) ([]byte, error) { return g.app.DB.Blob(g.Context(), hash) })
	var out []*model.Message
	for ev, err := range g.app.DB.AllEvents(g.Context(), thread, 0) {
		if err != nil {
			g.Fatal(err)
		}
		if asked, ok := ev.Body.(chat.Asked); ok {
			req, err := log.Request(&model.Head{}, asked.Sees)
			if err != nil {
				g.Fatal(err)
			}
			out = req.Messages
		}
		if err := log.Apply(ev); err != nil {
			g.Fatal(err)
		}
	}
	return out
}

// toldOf is everything of them in one text: words, files and pictures.
func toldOf(messages []*model.Message) string {
	var b strings.Builder
	for _, m := range messages {
		for _, block := range m.Blocks {
			switch v := block.(type) {
			case chat.Text:
				b.WriteString(v.Text + "\n")
			case chat.Image:
				fmt.Fprintf(&b, "<picture %s %s>\n", v.Name, v.MediaType)
			case chat.File:
				fmt.Fprintf(&b, "<file %s %s %d wanted=%v trouble=%q>\n", v.Name, v.MediaType, v.Size, v.Wanted, v.Trouble)
			}
		}
	}
	return b.String()
}

func TestDiscordFiles(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{})
	asked := g.post("ada", "general", discordsim.Said{Text: "look at these\n!say seen", Files: map[string][]byte{
		"a.png": aPicture(t), "notes.txt": []byte("the secret word is heron\n"), "data.bin": {0, 1, 2, 3}, "empty.txt": {}, "really.txt": aPicture(t),
	}})
	g.message("answer", func(m discordsim.Message) bool { return answers(asked)(m) && m.Text() == "seen" })
	g.hasReaction(asked, "✅")
	thread := g.threadOf("general", asked)
	text := toldOf(g.asked(thread))
	for _, want := range []string{
		"<file a.png image/png ", "<picture a.png image/png>", "<picture really.txt image/png>",
		"<attachment filename=\"notes.txt\">\nthe secret word is heron\n</attachment>",
		"<file data.bin application/octet-stream 4 wanted=false trouble=\"\">", "<file empty.txt text/plain; charset=utf-8 0 wanted=false",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the model was not shown %q:\n%s", want, text)
		}
	}
	names, err := filepath.Glob(filepath.Join(g.workspace(thread), "attachments", "*_data.bin"))
	if err != nil || len(names) != 1 {
		t.Fatalf("the file lies nowhere: %v, %v", names, err)
	}
	if data, err := os.ReadFile(names[0]); err != nil || !bytes.Equal(data, []byte{0, 1, 2, 3}) {
		t.Errorf("it holds %v, %v", data, err)
	}
	entries := g.log(thread)
	if len(entries) != 2 || len(entries[0].Attachments) != 5 || !entries[1].IsBot || entries[1].Text != "seen" {
		t.Fatalf("the log says %+v", entries)
	}
	for _, a := range entries[0].Attachments {
		if !strings.HasPrefix(a.Original, "http") || !strings.HasPrefix(a.Local, "attachments/") {
			t.Errorf("an attachment is logged as %+v", a)
		}
		if _, err := os.Stat(filepath.Join(g.workspace(thread), a.Local)); err != nil {
			t.Errorf("the log is wrong: %v", err)
		}
	}
	g.until("nothing is to be fetched any more", func() bool { // the model may answer before the note of it is gone
		left, err := g.app.DB.Memos(t.Context(), "discord-files/chorus")
		return err == nil && len(left) == 0
	})
}

// Whatever is wrong with a file, the words are answered, the model knows, and a sign says so.
func TestDiscordFilesThatCannotBeHad(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{})
	for _, c := range []struct {
		name  string
		fault *discordsim.Fault
		lie   func(*discordsim.Attachment)
		want  string
	}{
		{"too large by its own word", nil, func(a *discordsim.Attachment) { a.Size = 900 << 20 }, "larger than the limit of 25.0 MB"},
		{"elsewhere", nil, func(a *discordsim.Attachment) { a.URL = "https://example.com/x.txt" }, "it is not stored on Discord"},
		{"elsewhere, named alike", nil, func(a *discordsim.Attachment) { a.URL = "https://cdn.discordapp.com.example.com/x.txt" }, "it is not stored on Discord"},
		{"gone", &discordsim.Fault{Kind: discordsim.FaultError, Status: 404}, nil, "Discord no longer has it"},
		{"broken", &discordsim.Fault{Kind: discordsim.FaultError, Status: 503}, nil, "it could not be fetched"},
		{"refused", &discordsim.Fault{Kind: discordsim.FaultError, Status: 418}, nil, "Discord answered 418"},
	} {
		number := 0
		if c.fault != nil {
			c.fault.Route = "GET /attachments"
			number = g.fault(*c.fault)
		}
		asked := g.post("ada", "general", discordsim.Said{Text: "see\n!say " + c.name, Files: map[string][]byte{"x.txt": []byte("x")}, Lie: c.lie})
		g.message("answer", func(m discordsim.Message) bool { return answers(asked)(m) && m.Text() == c.name })
		if text := toldOf(g.asked(g.threadOf("general", asked))); !strings.Contains(text, c.want) {
			t.Errorf("%s: the model was told %s", c.name, text)
		}
		if _, err := g.WaitMessage(g.soon(), func(m discordsim.Message) bool {
			return m.ID == asked && len(m.Reactions) == 2 && strings.Contains(fmt.Sprint(m.Reactions), "⚠️") && strings.Contains(fmt.Sprint(m.Reactions), "✅")
		}); err != nil {
			t.Errorf("%s: nobody sees it: %v\n%s", c.name, err, g.transcript())
		}
		if c.fault != nil {
			g.Clear(number)
		}
	}
}

// What a file calls itself is not believed: a size that is too small, a type that is another's.
func TestDiscordFilesLie(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{})
	asked := g.post("ada", "general", discordsim.Said{Text: "see\n!say fine", Files: map[string][]byte{"page.png": []byte("<html>no picture</html>")},
		Lie: func(a *discordsim.Attachment) {
			a.Size, a.ContentType, a.Filename = 1, "image/png", "../../../etc/CON\u202Egnp.png"
		}})
	g.message("answer", func(m discordsim.Message) bool { return answers(asked)(m) && m.Text() == "fine" })
	g.hasReaction(asked, "✅")
	thread := g.threadOf("general", asked)
	if text := toldOf(g.asked(thread)); strings.Contains(text, "<picture") || !strings.Contains(text, "<file CON_gnp.png text/plain; charset=utf-8 23 ") {
		t.Errorf("the model was told %s", text)
	}
	if names, err := filepath.Glob(filepath.Join(g.workspace(thread), "attachments", "*_CON_gnp.png")); err != nil || len(names) != 1 {
		t.Errorf("it lies at %v, %v", names, err)
	}
}

// A store of files that hangs holds nobody but those who wait for a file, and those not for ever.
func TestDiscordFilesHang(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{})
	g.fault(discordsim.Fault{Kind: discordsim.FaultSlow, Route: "GET /attachments", Millis: 60_000})
	hanging := g.post("ada", "general", discordsim.Said{Text: "see\n!say without it", Files: map[string][]byte{"x.txt": []byte("x")}})
	other := g.say("bob", "general", "say at once")
	g.message("other answer", func(m discordsim.Message) bool { return answers(other)(m) && m.Text() == "at once" })
	g.message("answer without the file", func(m discordsim.Message) bool { return answers(hanging)(m) && m.Text() == "without it" })
	if text := toldOf(g.asked(g.threadOf("general", hanging))); !strings.Contains(text, "Discord did not send it in time") {
		t.Errorf("the model was told %s", text)
	}
}

// In a room a picture that somebody showed is there when somebody else asks about it.
func TestDiscordFilesInRooms(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{"bots/chorus.yaml": "routing: room\nmode: chat\ninnerName: Wren\n"})
	g.fault(discordsim.Fault{Kind: discordsim.FaultSlow, Route: "GET /attachments", Millis: 600, Count: 1})
	g.post("bob", "general", discordsim.Said{Text: "my bird", Files: map[string][]byte{"bird.png": aPicture(t)}})
	g.say("bob", "general", "isn't it nice")
	asked := g.say("ada", "general", "<@"+g.User("chorus").String()+"> what is that?\n!say a bird")
	g.message("answer", func(m discordsim.Message) bool { return strings.Contains(m.Text(), "a bird") })
	g.hasReaction(asked, "✅")
	room := g.room("general", "chorus")
	text := toldOf(g.asked(room))
	picture, nice := strings.Index(text, "<picture bird.png"), strings.Index(text, "isn't it nice")
	if picture < 0 || nice < picture || !strings.HasPrefix(text[max(0, strings.Index(text, "my bird")):], "my bird\n<file bird.png image/png") {
		t.Errorf("the model was told:\n%s", text)
	}
}

// What was announced and not fetched is fetched after a restart.
func TestDiscordFilesOutliveTheProcess(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{})
	number := g.fault(discordsim.Fault{Kind: discordsim.FaultSlow, Route: "GET /attachments", Millis: 60_000})
	asked := g.post("ada", "general", discordsim.Said{Text: "see\n!say now I have it", Files: map[string][]byte{"x.txt": []byte("after all")}})
	g.hasReaction(asked, "👀")
	g.end()
	g.Clear(number)
	g.start()
	g.message("answer", func(m discordsim.Message) bool { return answers(asked)(m) && m.Text() == "now I have it" })
	g.hasReaction(asked, "✅")
	thread := g.threadOf("general", asked)
	if text := toldOf(g.asked(thread)); !strings.Contains(text, "after all") {
		t.Errorf("the model was told %s", text)
	}
	if names, _ := filepath.Glob(filepath.Join(g.workspace(thread), "attachments", "*")); len(names) != 1 {
		t.Errorf("there are %v", names)
	}
}

func TestLayKeepsToTheWorkspace(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	first, err := host.Lay(dir, "attachments/1_a.txt", []byte("one"))
	if err != nil || first != "attachments/1_a.txt" {
		t.Fatal(first, err)
	}
	if again, err := host.Lay(dir, "attachments/1_a.txt", []byte("one")); err != nil || again != first {
		t.Errorf("the same again lies at %s, %v", again, err)
	}
	if other, err := host.Lay(dir, "attachments/1_a.txt", []byte("two")); err != nil || other != "attachments/1_a-2.txt" {
		t.Errorf("another one lies at %s, %v", other, err)
	}
	trap := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(trap, "attachments")); err != nil {
		t.Fatal(err)
	}
	if at, err := host.Lay(trap, "attachments/1_a.txt", []byte("one")); err == nil {
		t.Errorf("it followed a link to %s", at)
	}
	if left, _ := os.ReadDir(outside); len(left) > 0 {
		t.Errorf("outside lies %v", left)
	}
	inner := t.TempDir()
	if err := os.MkdirAll(filepath.Join(inner, ".git", "hooks"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(".git/hooks", filepath.Join(inner, "attachments")); err != nil {
		t.Fatal(err)
	}
	if at, err := host.Lay(inner, "attachments/1_a.txt", []byte("one")); err == nil {
		t.Errorf("it followed a link into .git: %s", at)
	}
}

var _ connector.Files = (*host.Backend)(nil)
