package webtest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestDiscordScreen takes the picture of Discord in the README: the simulator's page while bin/chorus asks there.
func TestDiscordScreen(t *testing.T) {
	if !*screens {
		t.Skip("the pictures are taken by: make screens")
	}
	bin, err := filepath.Abs("../../../../bin/chorus")
	if err != nil {
		t.Fatal(err)
	}
	var guild struct {
		API  string            `json:"api"`
		Page string            `json:"page"`
		Bots map[string]string `json:"bots"`
	}
	if err := json.Unmarshal([]byte(firstLine(t, exec.CommandContext(t.Context(), bin, "sim", "discord", "--addr", "127.0.0.1:0", "--bots", "helper", "--json"), "{")), &guild); err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	config := filepath.Join(work, "config")
	if err := os.MkdirAll(config, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(config, "shared.yaml"), []byte("answer: all\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	serve := exec.CommandContext(t.Context(), bin, "serve", "--addr", "127.0.0.1:0", "--home", work)
	serve.Env = append(os.Environ(), "DISCORD_API_URL="+guild.API, "DISCORD_BOT_TOKEN="+guild.Bots["helper"], "CHORUS_DEFAULT_MODEL=demo/script")
	firstLine(t, serve, "listening on")
	sim := func(method, path, body string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, guild.Page+"sim/"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if answer, _ := io.ReadAll(res.Body); res.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s %s", path, res.Status, answer)
		}
	}
	say := func(text string) {
		t.Helper()
		sim("POST", "act", fmt.Sprintf(`{"as":"ada","in":"general","say":%q}`, text))
	}
	sim("GET", "wait?timeout=60s&connected=helper", "")
	say("say The tests live in `greet_test.go`: two cases, a name and none. Both pass.")
	sim("GET", "wait?timeout=60s&from=helper&in=general&contains=Both+pass", "")
	say("say I will run the tests first.\ncall bash {\"command\":\"make test && git push\"}\nend\nsay done")
	sim("GET", "wait?timeout=60s&from=helper&in=general&contains=make+test", "")

	p := (&server{T: t, browser: &windowed, url: strings.TrimSuffix(guild.Page, "/")}).open()
	p.desktop()
	p.visit("/")
	p.waitForText("make test")
	p.eval(`const said = ["Where are the tests, and do they pass?", "Run them again, and push if they pass."];
		for (const [i, text] of said.entries()) for (const e of document.querySelectorAll("*")) if (!e.children.length && e.textContent.includes(["say The tests", "say I will"][i])) e.textContent = text`)
	p.screenshot("discord")
}

// firstLine starts a program, which ends with the test, and gives the first line that has a text in it.
func firstLine(t *testing.T, cmd *exec.Cmd, with string) string {
	t.Helper()
	read, write := io.Pipe()
	cmd.Stdout, cmd.Stderr = write, write
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it listens until then
		_ = cmd.Wait()
		_ = write.Close()
	})
	lines := bufio.NewScanner(read)
	for lines.Scan() {
		if strings.Contains(lines.Text(), with) {
			line := lines.Text()
			go func() { _, _ = io.Copy(io.Discard, read) }() // or it would stand still
			return line
		}
	}
	t.Fatalf("%s said nothing of %q", cmd.Path, with)
	return ""
}
