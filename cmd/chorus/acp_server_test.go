package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"

	"chorus/cmd/chorus/editors"
)

// chorusOf runs the program for a home and gives what it prints.
func chorusOf(t *testing.T, home string, args ...string) string {
	t.Helper()
	cmd := exec.Command("chorus", args...)
	cmd.Env = []string{"HOME=" + home, "CHORUS_HOME=" + home, "USER=ada", "PATH=" + os.Getenv("PATH")}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("chorus %v: %v", args, err)
	}
	return string(out)
}

// serverOf starts a server for a home and gives its address.
func serverOf(t *testing.T, home string, env []string) string {
	t.Helper()
	cmd := exec.Command("chorus", "serve", "--addr", "127.0.0.1:0")
	cmd.Env = append([]string{"HOME=" + home, "CHORUS_HOME=" + home, "USER=ada", "PATH=" + os.Getenv("PATH"), "CHORUS_SANDBOX=host"}, env...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if m := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(lines.Text()); m != "" {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return m
		}
	}
	t.Fatal("the server did not say where it listens")
	return ""
}

// On a server the modes are the profiles of its configuration too, as far as the token may choose them.
func TestEditorModesOfAServer(t *testing.T) {
	t.Parallel()
	env, server := model(t, `
- calls: [{id: a, name: bash, args: {command: "echo freely"}}]
- text: done
`)
	home := filepath.Join(t.TempDir(), "home")
	config := filepath.Join(home, "config", "shared.yaml")
	if err := os.MkdirAll(filepath.Dir(config), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, []byte("profiles:\n  careful:\n    deny: ['tool:bash:echo .*']\n  plan: {deny: ['tool:bash:.*']}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	url := serverOf(t, home, env)
	modes := func(scopes string) (*editor, sdk.NewSessionResponse, string) {
		file := filepath.Join(t.TempDir(), "token")
		token := regexp.MustCompile(`chorus_[A-Za-z0-9_-]+`).FindString(chorusOf(t, home, "token", "create", "--name", strings.ReplaceAll(scopes, ",", "-"), "--scopes", scopes))
		if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
		e := newEditor(t, nil, "--server", url, "--token-file", file)
		made := e.open()
		var ids []string
		for _, m := range made.Modes.AvailableModes {
			ids = append(ids, string(m.Id))
		}
		return e, made, strings.Join(ids, " ")
	}
	if _, _, ids := modes("chat,approve"); ids != "standard locked plan review implement verify" {
		t.Errorf("a token to chat may choose %s", ids)
	}
	e, made, ids := modes("admin")
	if ids != "standard open guarded locked careful plan review implement verify" {
		t.Errorf("an admin may choose %s", ids)
	}
	if _, err := e.conn.SetSessionMode(t.Context(), sdk.SetSessionModeRequest{SessionId: made.SessionId, ModeId: "careful"}); err != nil {
		t.Fatal(err)
	}
	e.must(made.SessionId, "do it")
	if len(e.asked()) > 0 || !strings.Contains(e.shown(), "careful") || len(server.Requests()) != 2 {
		t.Errorf("asked %v, shown %s", e.asked(), e.shown())
	}
}

// On a server modes are changed as here, and a token that is no good any more is a request to sign in: the session goes on with
// the next one.
func TestEditorOnAServer(t *testing.T) {
	t.Parallel()
	env, server := model(t, `
- text: planned
- calls: [{id: a, name: bash, args: {command: "touch free"}}]
- text: done
- text: with another token
`)
	home := filepath.Join(t.TempDir(), "home")
	url := serverOf(t, home, env)
	newToken := func(name, scopes string) string {
		return strings.TrimSpace(regexp.MustCompile(`chorus_[A-Za-z0-9_-]+`).FindString(chorusOf(t, home, "token", "create", "--name", name, "--scopes", scopes)))
	}
	file := filepath.Join(t.TempDir(), "token")
	write := func(token string) {
		if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(newToken("one", "admin"))
	e := newEditor(t, nil, "--server", url, "--token-file", file)
	made := e.open()
	if made.Modes == nil || made.Modes.CurrentModeId != "standard" {
		t.Fatalf("modes: %+v", made.Modes)
	}
	mode := func(id sdk.SessionModeId) error {
		_, err := e.conn.SetSessionMode(t.Context(), sdk.SetSessionModeRequest{SessionId: made.SessionId, ModeId: id})
		return err
	}
	if err := mode("plan"); err != nil {
		t.Fatal(err)
	}
	e.must(made.SessionId, "make a plan")
	if last := server.Requests()[len(server.Requests())-1]; strings.Contains(string(last.Body), `"name":"write"`) {
		t.Error("in the mode plan the agent can write")
	}
	if err := mode("locked"); err != nil {
		t.Fatal(err)
	}
	e.must(made.SessionId, "do it")
	if _, err := os.Stat(filepath.Join(e.dir, "free")); err == nil || len(e.asked()) > 0 || !strings.Contains(e.shown(), "touch free") {
		t.Errorf("under the profile locked: asked %v, shown %s", e.asked(), e.shown())
	}

	chorusOf(t, home, "token", "revoke", "one")
	code := func(err error) int {
		var refused *sdk.RequestError
		if !errors.As(err, &refused) {
			return 0
		}
		if !strings.Contains(refused.Message, "token") {
			t.Errorf("it does not say what to do: %s", refused.Message)
		}
		return refused.Code
	}
	_, err := e.say(made.SessionId, "still there?")
	if code(err) != authRequiredCode {
		t.Errorf("a prompt with a revoked token: %v", err)
	}
	sign := func() error {
		_, err := e.conn.Authenticate(t.Context(), sdk.AuthenticateRequest{MethodId: editors.SignIn})
		return err
	}
	if err := sign(); code(err) != authRequiredCode {
		t.Errorf("signed in with a revoked token: %v", err)
	}
	write(newToken("two", "admin"))
	if err := sign(); err != nil {
		t.Fatal(err)
	}
	e.forget()
	if _, err := e.conn.LoadSession(t.Context(), sdk.LoadSessionRequest{SessionId: made.SessionId, Cwd: e.dir, McpServers: []sdk.McpServer{}}); err != nil {
		t.Fatal(err)
	}
	e.forget()
	e.must(made.SessionId, "and now?")
	if e.told() != "with another token" {
		t.Errorf("%q", e.told())
	}

	// Somebody who may only talk does not choose what the owner alone may.
	write(newToken("guest", "chat"))
	if err := sign(); err != nil {
		t.Fatal(err)
	}
	made = e.open()
	if err := mode("open"); err == nil || !strings.Contains(err.Error(), "admin") {
		t.Errorf("a guest chose the profile open: %v", err)
	}
	if err := mode("locked"); err != nil {
		t.Error(err)
	}
	e.leave()
}

// authRequiredCode is the protocol's code for a person who must sign in.
const authRequiredCode = -32000
