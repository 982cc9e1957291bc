package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// storyRoot is the repository, wherever a story stands.
var storyRoot, _ = filepath.Abs(filepath.Join("..", ".."))

var listens = regexp.MustCompile(`listening on (http://\S+)`)

const httpUsage = "http SERVER METHOD PATH [BODY]"

// httpAs asks a server that was spawned, as the owner of the home; "-" before the method: without a token.
func httpAs(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, !neg && (len(args) == 3 || len(args) == 4), httpUsage)
	status, body := request(ts, args)
	answer := fmt.Sprintf("%d\n%s\n", status, body)
	ts.Logf("%s", answer)
	ts.Check(os.WriteFile(filepath.Join(stageOf(ts).work, "answer"), []byte(answer), 0o600))
}

// request makes one request, with the arguments of the command http.
func request(ts *testscript.TestScript, args []string) (int, []byte) {
	need(ts, len(args) == 3 || len(args) == 4, httpUsage)
	at := whereIs(ts, args[0])
	var body io.Reader
	if len(args) == 4 {
		body = strings.NewReader(args[3])
	}
	ctx, cancel := context.WithTimeout(context.Background(), storyTime)
	defer cancel()
	method, nobody := strings.CutPrefix(args[1], "-")
	req, err := http.NewRequestWithContext(ctx, method, at+args[2], body)
	ts.Check(err)
	if !nobody {
		token, err := os.ReadFile(filepath.Join(ts.Getenv("CHORUS_HOME"), "token"))
		ts.Check(err)
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	ts.Check(err)
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	ts.Check(err)
	return res.StatusCode, data
}

// whereIs is the URL of a server that was spawned.
func whereIs(ts *testscript.TestScript, server string) string {
	said, err := os.ReadFile(filepath.Join(stageOf(ts).work, server+".out"))
	ts.Check(err)
	at := listens.FindSubmatch(said)
	if at == nil {
		ts.Fatalf("%s does not listen yet", server)
	}
	return string(at[1])
}

func addressOf(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, !neg && len(args) == 2, "address SERVER VAR")
	url := whereIs(ts, args[0])
	ts.Setenv(args[1], url)
	ts.Setenv(args[1]+"_ADDR", strings.TrimPrefix(url, "http://"))
}

var shellBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

// untilCompleted lets a guide's curl with a time for a stream read it until a run's end is told, however
// long or short that takes.
const untilCompleted = `
curl() {
	case "$*" in *--max-time*) ;; *) command curl "$@"; return ;; esac
	command curl "$@" >stream.out & reader=$!
	until grep -q '^event: completed' stream.out || ! kill -0 $reader; do sleep 0.02; done
	kill $reader || true
	wait $reader || true
	cat stream.out
}
`

// runGuide does what a guide says, as one script that ends at its first mistake.
func runGuide(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, !neg && (len(args) == 1 || len(args) == 2), "guide FILE [SERVER]")
	text, err := os.ReadFile(filepath.Join(storyRoot, "docs", "guides", args[0]))
	ts.Check(err)
	script := "set -e\n" + untilCompleted
	for _, block := range shellBlock.FindAllStringSubmatch(string(text), -1) {
		script += block[1] + "echo\n"
	}
	if len(args) == 2 {
		for _, usual := range []string{"http://127.0.0.1:8420", "http://127.0.0.1:8430"} { // of a server, and of sim discord
			script = strings.ReplaceAll(script, usual, whereIs(ts, args[1]))
		}
	}
	script = strings.ReplaceAll(script, "--max-time 2", "--max-time 60")
	path := filepath.Join(stageOf(ts).work, "guide.sh")
	ts.Check(os.WriteFile(path, []byte(script), 0o600))
	ts.Check(ts.Exec("sh", path))
	ts.Check(os.WriteFile(filepath.Join(stageOf(ts).work, "guide.out"), []byte(ts.ReadFile("stdout")), 0o600))
}
