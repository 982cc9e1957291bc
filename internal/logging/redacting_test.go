package logging_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/operations"
	"chorus/internal/store/storetest"
	"chorus/internal/tool"
)

// plant is a text with a secret in it that was made up just now.
type plant struct{ kind, text, secret string }

// plants makes fifty secrets of all kinds. None of them stands in a file of ours.
func plants() []plant {
	dice := rand.New(rand.NewPCG(1, 2))
	const signs = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	throw := func(n int) string {
		out := make([]byte, n)
		for i := range out {
			out[i] = signs[dice.IntN(len(signs))]
		}
		out[n/2] = '7'
		return string(out)
	}
	var out []plant
	for _, head := range []string{"sk-ant-api03-", "sk-proj-", "sk-", "sk-or-v1-", "ghp_", "gho_", "ghs_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "xoxa-", "AIza", "ya29.",
		"npm_", "hf_", "sk_live_", "whsec_", "GOCSPX-", "gsk_"} {
		s := throw(44)
		out = append(out, plant{head, "found " + head + s + " there", s})
	}
	for i, form := range []string{"password: %s", "DB_PASSWORD=%s", `{"client_secret": "%s"}`, `token = "%s"`, "export API_TOKEN=%s", "passwd=%s", "https://ada:%s@example.com/x",
		"redis://:%s@cache:6379", "Authorization: Bearer %s", "authorization: Token %s", "x-api-key: %s", `"accessKey":"%s"`, "GET /?api_key=%s&x=1", "aws_secret_access_key = %s",
		`'password' => '%s'`, `{\"password\":\"%s\"}`, "--token=%s", "AccountKey=%s;", "see https://hooks.slack.com/services/T00000000/B00000000/%s", "secret: %s"} {
		s := throw(24 + i)
		out = append(out, plant{form, fmt.Sprintf(form, s), s})
	}
	caps := strings.ToUpper(throw(16))
	basic := base64.StdEncoding.EncodeToString([]byte("ada:" + throw(20)))
	signature, line, bot := throw(43), throw(64), throw(38)
	out = append(out,
		plant{"aws", "AKIA" + caps, caps}, plant{"basic", "Authorization: Basic " + basic, basic},
		plant{"jwt", "eyJ" + throw(20) + ".eyJ" + throw(40) + "." + signature, signature},
		plant{"pem", "-----BEGIN RSA PRIVATE KEY-----\n" + line + "\n-----END RSA PRIVATE KEY-----", line},
		plant{"openssh", "-----BEGIN OPENSSH PRIVATE KEY-----\n" + bot + line[:20] + "\n-----END OPENSSH PRIVATE KEY-----", bot + line[:20]},
		plant{"discord", "N" + throw(25) + "." + throw(6) + "." + bot, bot})
	for range 4 {
		s := throw(96)
		out = append(out, plant{"thrown", "the code is " + s + " today", s})
	}
	return out
}

// server is a tool that says whatever it is asked to, as somebody's MCP server may.
type server struct{}

func (server) Spec() tool.Spec {
	return tool.Spec{Name: "mcp__x__say", Description: "says it", Schema: json.RawMessage(`{"type":"object","properties":{"file":{"type":"string"}}}`), ReadOnly: true}
}

func (server) Access([]byte) []tool.Access { return nil }

func (server) Run(ctx context.Context, args []byte) (tool.Result, error) {
	var in struct{ File string }
	if err := json.Unmarshal(args, &in); err != nil {
		return tool.Result{}, err
	}
	text, err := os.ReadFile(in.File)
	if err != nil {
		return tool.Result{}, err
	}
	tool.CallFrom(ctx).Progress(string(text))
	return tool.OK(string(text)), errors.New("it broke: " + string(text))
}

// TestFiftySecrets lets tools come upon secrets in files, in what commands print, in
// the environment and in what a server says, and looks for them in every byte that is
// left in the home.
func TestFiftySecrets(t *testing.T) {
	t.Parallel()
	all := plants()
	if len(all) != 50 {
		t.Fatalf("%d secrets", len(all))
	}
	ofEnviron := "swordfish-of-the-environment"
	home, dir := storetest.FreshHome(t), t.TempDir()
	a, _ := openLogging(t, home, []string{"STORY_TOKEN=" + ofEnviron})
	all = append(all, plant{"environment", "it is " + ofEnviron, ofEnviron},
		plant{"environment in base64", base64.StdEncoding.EncodeToString([]byte("x:" + ofEnviron)), base64.StdEncoding.EncodeToString([]byte("x:" + ofEnviron))})
	const thread = chat.ThreadID("cli:home:secrets@main")
	b, err := a.Setup.NewToolbox(thread, dir)
	if err != nil {
		t.Fatal(err)
	}
	set, err := tool.NewSet(append(b.List, server{})...)
	if err != nil {
		t.Fatal(err)
	}
	tools := a.Logs.Redacting(set)
	var events []chat.Event
	call := func(name string, args map[string]any) {
		data, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		one, plain, err := tools.Resolve(name, data)
		if err == nil {
			err = tools.Validate(one, plain)
		}
		if err != nil {
			t.Fatal(err)
		}
		ctx := tool.WithCall(t.Context(), tool.Call{ID: fmt.Sprintf("c%d", len(events)), Progress: func(text string) { a.Log.Info("progress", "text", text) }})
		res, err := one.Run(ctx, plain)
		if err != nil {
			a.Log.Error("a tool failed", "err", err)
			res.Blocks = append(res.Blocks, chat.Text{Text: err.Error()})
		}
		if len(res.Blocks) == 0 || res.Blocks.Text() == "" {
			t.Fatalf("%s %s gave nothing", name, data)
		}
		events = append(events, chat.Event{Body: chat.ToolRan{Call: "c", Name: name, Blocks: res.Blocks, Outcome: chat.Ran}})
	}
	for i, p := range all {
		file := filepath.Join(dir, fmt.Sprintf("f%d.txt", i))
		if err := os.WriteFile(file, []byte("first\n"+p.text+"\nlast\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		call("read", map[string]any{"path": file})
		call("bash", map[string]any{"command": "cat " + file + "; cat " + file + " >&2"})
		call("mcp__x__say", map[string]any{"file": file})
		a.Log.Warn("saw "+p.text, "what", p.text, "why", fmt.Errorf("because %s", p.text))
	}
	call("bash", map[string]any{"command": "echo $STORY_TOKEN; cat *.txt"})
	if _, err := a.Logs.RedactingKeep(b.Roots.Keep)(t.Context(), "long", all[0].text); err != nil {
		t.Fatal(err)
	}
	_, err = a.DB.Commit(t.Context(), journal.Commit{Thread: thread, Create: &journal.Thread{}})
	if err != nil {
		t.Fatal(err)
	}
	row, err := a.DB.Take(t.Context(), thread)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.DB.Commit(t.Context(), journal.Commit{Thread: thread, Epoch: row.Epoch, Events: events}); err != nil {
		t.Fatal(err)
	}
	var export bytes.Buffer
	for _, as := range []operations.Format{operations.Markdown, operations.JSONLines, operations.CSV} {
		if err := a.Service.Export(t.Context(), &export, row, operations.ExportRequest{Format: as}); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(home, "export.md"), export.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(b.Close(), a.Close()); err != nil {
		t.Fatal(err)
	}
	nothingLeft(t, home, all)
	if !strings.Contains(export.String(), "[redacted:") || !strings.Contains(readLog(t, home), "[redacted:") {
		t.Error("nothing was redacted: the test looked at the wrong place")
	}
}

// nothingLeft looks into every file below dir.
func nothingLeft(t *testing.T, dir string, all []plant) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		for _, p := range all {
			if bytes.Contains(data, []byte(p.secret)) {
				t.Errorf("%s holds the secret of %q", path, p.kind)
			}
		}
		return nil
	})
	if err != nil || files < 3 {
		t.Fatalf("%d files: %v", files, err)
	}
}
