package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"chorus/internal/blobstorage/s3test"
	"chorus/internal/npmtest"
	"chorus/internal/polltest"
	"chorus/internal/sim/llmsim"
	"chorus/internal/store/pgtest"
)

type step = func(ts *testscript.TestScript, neg bool, args []string)

// storyCommands are what stories can do beside testscript's own commands. A file
// is looked for in the current directory, then in $WORK.
func storyCommands() map[string]step {
	return map[string]step{
		"exits":     exits,       // exits CODE PROGRAM ARGS…: run it and expect that exit code
		"llm":       llm,         // llm FILE [KEY…]: a model server that plays the script; sets keys and base URLs; further keys are accepted too
		"llmsaw":    llmSaw,      // [!] llmsaw N REGEX: in the body of the N-th request; 0 is the last, -1 the one before
		"llmkey":    llmKey,      // llmkey N KEY: the N-th request came with that key
		"llmcount":  llmCount,    // llmcount N: that many requests were made
		"llmwait":   llmWait,     // llmwait N: until that many requests were made
		"llmprefix": llmPrefix,   // llmprefix N: request N+1 begins with request N
		"session":   session,     // session VAR: the id of the session that was active last
		"sameseqs":  sameSeqs,    // sameseqs A B: both files hold the same numbered events
		"spawn":     spawn,       // spawn NAME PROGRAM ARGS…: in the background, output to $WORK/NAME.out and NAME.err
		"await":     await,       // await FILE REGEX: until the file holds it
		"signal":    signalTo,    // signal NAME int|term|kill|stop|cont
		"reap":      reap,        // reap NAME CODE: wait for its end; the code -1 is a death by signal
		"term":      terminal,    // term FILE PROGRAM ARGS…: on a terminal, played by the file
		"tamper":    tamper,      // tamper WHAT: change the database behind the program's back; tampering lists how
		"oldhome":   oldHome,     // oldhome DATE: the database of the home is the one that Chorus of that day left in testdata/homes
		"recorded":  recorded,    // recorded KEY: until the server knows which message on the platform carries a key that begins so
		"http":      httpAs,      // http SERVER METHOD PATH [BODY]: with the owner's token; status and body go to $WORK/answer
		"address":   addressOf,   // address SERVER VAR: where it listens, as a URL, and without its scheme in VAR_ADDR
		"guide":     runGuide,    // guide FILE [SERVER]: run the sh blocks of a guide, against that server; output to $WORK/guide.out
		"json":      hasObject,   // [!] json [-in=FILE] [-count=N] FIELD…: an object of the last output, or of the file, has these fields
		"until":     untilObject, // until [-count=N] FIELD… -- COMMAND: until its output has such an object; a command is a program or http
		"website":   website,     // website VAR FOLDER: serves it; its address is in VAR, and without its scheme in VAR_ADDR
		"npm":       npmPackages, // npm PACKAGE@VERSION…: what others wrote; node's scripts find it in $MODULES
		"postgres":  postgres,    // postgres: a new database, which programs use from then on
		"bucket":    bucket,      // bucket [away|back]: an S3 server, where programs keep large blobs from then on; away: it answers nobody
		"escapes":   escapes,     // [!] escapes FILE: whether it holds escape codes; stdout and stderr are files too
	}
}

type stageKey struct{}

// stage is what a story keeps between its commands.
type stage struct {
	work    string
	server  *llmsim.Server
	stop    func()
	spawned map[string]*spawned
	t       testing.TB
	bucket  *s3test.Server
}

func stageOf(ts *testscript.TestScript) *stage { return ts.Value(stageKey{}).(*stage) }

func (s *stage) close() {
	for _, p := range s.spawned {
		_ = p.cmd.Process.Kill() // it may have ended long ago
		<-p.done
	}
	if s.stop != nil {
		s.stop()
	}
}

// file finds a file of the story.
func (s *stage) file(ts *testscript.TestScript, name string) string {
	if path := ts.MkAbs(name); exists(path) {
		return path
	}
	return filepath.Join(s.work, name)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func need(ts *testscript.TestScript, ok bool, usage string) {
	if !ok {
		ts.Fatalf("usage: %s", usage)
	}
}

func number(ts *testscript.TestScript, s string) int {
	n, err := strconv.Atoi(s)
	ts.Check(err)
	return n
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, !neg && len(args) >= 2, "exits CODE PROGRAM ARGS…")
	want, got := number(ts, args[0]), 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, expected %d", got, want)
	}
}

func postgres(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, !neg && len(args) == 0, "postgres")
	ts.Setenv("CHORUS_DATABASE_URL", strings.Replace(pgtest.Database(stageOf(ts).t), "postgres@", "postgres:test-pw@", 1)) // any password will do
}

func bucket(ts *testscript.TestScript, neg bool, args []string) {
	s := stageOf(ts)
	switch {
	case !neg && len(args) == 0:
		s.bucket = s3test.New(s.t)
		ts.Setenv("CHORUS_BLOB_URL", s.bucket.BlobURL("stories"))
		ts.Setenv("AWS_ACCESS_KEY_ID", s3test.AccessKey)
		ts.Setenv("AWS_SECRET_ACCESS_KEY", s3test.SecretKey)
	case !neg && len(args) == 1 && args[0] == "away":
		s.bucket.Break(func(http.ResponseWriter, *http.Request, http.Handler) bool { panic(http.ErrAbortHandler) })
	case !neg && len(args) == 1 && args[0] == "back":
		s.bucket.Break(nil)
	default:
		ts.Fatalf("usage: bucket [away|back]")
	}
}

func llm(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, !neg && len(args) >= 1, "llm FILE [KEY…]")
	s := stageOf(ts)
	script, err := llmsim.ReadScript(s.file(ts, args[0]))
	ts.Check(err)
	if s.stop != nil {
		s.stop()
	}
	s.server = llmsim.New(llmsim.Options{Keys: append([]string{"test-key"}, args[1:]...)})
	s.server.Load(script)
	url, stop, err := s.server.Start()
	ts.Check(err)
	s.stop = stop
	ts.Setenv("LLM_HOST", strings.TrimPrefix(url, "http://"))
	ts.Setenv("ANTHROPIC_BASE_URL", url)
	ts.Setenv("ANTHROPIC_API_KEY", "test-key")
	ts.Setenv("OPENAI_BASE_URL", url+"/v1")
	ts.Setenv("OPENAI_API_KEY", "test-key")
}

// request gives the n-th request; 0 is the last one.
func (s *stage) request(ts *testscript.TestScript, n int) llmsim.Request {
	if s.server == nil {
		ts.Fatalf("no model server was started")
	}
	all := s.server.Requests()
	if n <= 0 {
		n += len(all)
	}
	if n < 1 || n > len(all) {
		ts.Fatalf("there is no request %d: %d were made", n, len(all))
	}
	return all[n-1]
}

func llmSaw(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, len(args) == 2, "[!] llmsaw N REGEX")
	re, err := regexp.Compile(args[1])
	ts.Check(err)
	r := stageOf(ts).request(ts, number(ts, args[0]))
	if re.Match(r.Body) == neg {
		ts.Fatalf("request %d: match of %s is %v:\n%s", r.N, args[1], !neg, r.Body)
	}
}

func llmKey(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, !neg && len(args) == 2, "llmkey N KEY")
	r := stageOf(ts).request(ts, number(ts, args[0]))
	key := r.Header.Get("X-Api-Key")
	if key == "" {
		key = strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	}
	if key != args[1] {
		ts.Fatalf("request %d came with the key %q", r.N, key)
	}
}

func llmCount(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, !neg && len(args) == 1, "llmcount N")
	if n := len(stageOf(ts).server.Requests()); n != number(ts, args[0]) {
		ts.Fatalf("%d requests were made", n)
	}
}

func llmWait(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, !neg && len(args) == 1, "llmwait N")
	ctx, cancel := context.WithTimeout(context.Background(), storyTime)
	defer cancel()
	n := number(ts, args[0])
	ts.Check(stageOf(ts).server.Wait(ctx, func(all []llmsim.Request) bool { return len(all) >= n }))
}

// llmPrefix holds two requests against each other, without the cache marks, which
// must wander.
func llmPrefix(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, !neg && len(args) == 1, "llmprefix N")
	n := number(ts, args[0])
	a, b := requestParts(ts, stageOf(ts).request(ts, n)), requestParts(ts, stageOf(ts).request(ts, n+1))
	if !reflect.DeepEqual(a["system"], b["system"]) || !reflect.DeepEqual(a["tools"], b["tools"]) {
		ts.Fatalf("request %d and %d differ in system prompt or tools", n, n+1)
	}
	before, _ := a["messages"].([]any)
	after, _ := b["messages"].([]any)
	if len(before) == 0 || len(after) < len(before) || !reflect.DeepEqual(before, after[:len(before)]) {
		ts.Fatalf("request %d does not begin with request %d:\n%v\n%v", n+1, n, before, after)
	}
}

func requestParts(ts *testscript.TestScript, r llmsim.Request) map[string]any {
	var all map[string]any
	ts.Check(json.Unmarshal(r.Body, &all))
	unmark(all)
	return all
}

func unmark(v any) {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "cache_control")
		for _, inner := range v {
			unmark(inner)
		}
	case []any:
		for _, inner := range v {
			unmark(inner)
		}
	}
}

func session(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, !neg && len(args) == 1, "session VAR")
	cmd := storyProgram(ts, "chorus", "thread", "list", "--json", "--limit", "1")
	out, err := cmd.Output()
	ts.Check(err)
	var list []struct{ SessionID string }
	ts.Check(json.Unmarshal(out, &list))
	if len(list) == 0 {
		ts.Fatalf("there is no session")
	}
	ts.Setenv(args[0], list[0].SessionID)
}

// storyProgram is a command as the story's exec would start it.
func storyProgram(ts *testscript.TestScript, name string, args ...string) *exec.Cmd {
	path := name
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if found, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			path = found
			break
		}
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = append(environment(ts), "PWD="+cmd.Dir)
	return cmd
}

// environment is the story's: testscript only tells single variables.
func environment(ts *testscript.TestScript) []string {
	var env []string
	for _, name := range []string{
		"WORK", "PATH", "HOME", "TMPDIR", "CHORUS_HOME", "CHORUS_DATABASE_URL", "CHORUS_BLOB_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "USER", "TZ", "LANG", "TERM", "NO_COLOR", "EDITOR", "GORACE", "GOCOVERDIR",
		"ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL", "GIT_CONFIG_NOSYSTEM",
		"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL",
	} {
		if value := ts.Getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// seqsOf lists the numbered events of a file with one JSON object a line.
func seqsOf(ts *testscript.TestScript, name string) []string {
	var out []string
	for _, line := range strings.Split(strings.TrimSpace(ts.ReadFile(name)), "\n") {
		var e struct {
			Type string
			Seq  int64
		}
		ts.Check(json.Unmarshal([]byte(line), &e))
		if e.Seq > 0 {
			out = append(out, fmt.Sprint(e.Seq, " ", e.Type))
		}
	}
	return out
}

func sameSeqs(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, !neg && len(args) == 2, "sameseqs A B")
	a, b := seqsOf(ts, args[0]), seqsOf(ts, args[1])
	if len(a) == 0 || !reflect.DeepEqual(a, b) {
		ts.Fatalf("%s and %s differ:\n%s\n\n%s", args[0], args[1], strings.Join(a, "\n"), strings.Join(b, "\n"))
	}
}

// spawned is a program in the background.
type spawned struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

func spawn(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, !neg && len(args) >= 2, "spawn NAME PROGRAM ARGS…")
	s := stageOf(ts)
	cmd := storyProgram(ts, args[1], args[2:]...)
	out, err := os.Create(filepath.Join(s.work, args[0]+".out"))
	ts.Check(err)
	defer out.Close()
	errs, err := os.Create(filepath.Join(s.work, args[0]+".err"))
	ts.Check(err)
	defer errs.Close()
	cmd.Stdout, cmd.Stderr = out, errs
	ts.Check(cmd.Start())
	p := &spawned{cmd: cmd, done: make(chan struct{})}
	s.spawned[args[0]] = p
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // reap looks at the state
	}()
}

func (s *stage) process(ts *testscript.TestScript, name string) *spawned {
	p := s.spawned[name]
	if p == nil {
		ts.Fatalf("nothing was spawned as %s", name)
	}
	return p
}

func await(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, !neg && len(args) == 2, "await FILE REGEX")
	re, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	var data []byte
	if !polltest.Soon(func() bool {
		data, err = os.ReadFile(stageOf(ts).file(ts, args[0]))
		return err == nil && re.Match(data) // it may not be there yet
	}) {
		ts.Fatalf("%s never held %s:\n%s", args[0], args[1], data)
	}
}

func signalTo(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, !neg && len(args) == 2, "signal NAME int|term|kill|stop|cont")
	sig := map[string]syscall.Signal{"int": syscall.SIGINT, "term": syscall.SIGTERM, "kill": syscall.SIGKILL, "stop": syscall.SIGSTOP, "cont": syscall.SIGCONT}[args[1]]
	need(ts, sig != 0, "signal NAME int|term|kill|stop|cont")
	ts.Check(stageOf(ts).process(ts, args[0]).cmd.Process.Signal(sig))
}

func reap(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, !neg && len(args) == 2, "reap NAME CODE")
	s := stageOf(ts)
	p := s.process(ts, args[0])
	select {
	case <-p.done:
	case <-time.After(storyTime):
		ts.Fatalf("%s does not end", args[0])
	}
	delete(s.spawned, args[0])
	for _, suffix := range []string{".out", ".err"} {
		data, err := os.ReadFile(filepath.Join(s.work, args[0]+suffix))
		ts.Check(err)
		ts.Logf("[%s%s]\n%s", args[0], suffix, bytes.TrimSpace(data))
	}
	if got := p.cmd.ProcessState.ExitCode(); got != number(ts, args[1]) {
		ts.Fatalf("%s: exit code %d, expected %s", args[0], got, args[1])
	}
}

// tampering is what stories do to a database that only a broken program, a newer one or a forger would do.
var tampering = map[string]string{
	"newer-schema": `PRAGMA user_version = 999`,
	"audit-change": `DROP TRIGGER audit_no_update; UPDATE audit SET decision = 'deny' WHERE id = (SELECT max(id) - 1 FROM audit)`,
	"audit-cut": `DROP TRIGGER audit_no_delete; DROP TRIGGER IF EXISTS audit_at_the_end;
		DELETE FROM audit WHERE id > (SELECT max(id) - 2 FROM audit)`,
	"seals-cut":   `DROP TRIGGER audit_seals_no_delete; DROP TRIGGER audit_sealed_no_delete; DELETE FROM audit_seals; DELETE FROM audit_sealed`,
	"unused-blob": `INSERT INTO blobs (hash, size, data, touched) VALUES ('unused', 3, x'010203', 1)`,
	"digests":     `UPDATE events SET body = replace(body, '"digest":"', '"digest":"0') WHERE kind = 'asked'`,
	"renderer":    `UPDATE events SET body = replace(body, '"renderer":"', '"renderer":"older-') WHERE kind = 'run_started' AND seq > 4`,
}

// oldHome puts a database into the home that an earlier Chorus made. Its conversations work in the story's folder: theirs is nowhere.
func oldHome(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, !neg && len(args) == 1, "oldhome DATE")
	packed, err := os.Open(filepath.Join("..", "..", "testdata", "homes", args[0]+".db.gz"))
	ts.Check(err)
	defer packed.Close()
	unpacked, err := gzip.NewReader(packed)
	ts.Check(err)
	data, err := io.ReadAll(unpacked)
	ts.Check(err)
	home := ts.Getenv("CHORUS_HOME")
	ts.Check(os.MkdirAll(home, 0o700))
	path := filepath.Join(home, "chorus.db")
	ts.Check(os.WriteFile(path, data, 0o600))
	db, err := sql.Open("sqlite", path)
	ts.Check(err)
	defer db.Close()
	_, err = db.Exec("UPDATE threads SET dir = ?", ts.MkAbs("."))
	ts.Check(err)
}

// recorded waits until the server knows which message of the platform carries its key: a program replies faster than any
// person, and a reply that comes before that is a message like any other.
func recorded(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, !neg && len(args) == 1, "recorded KEY")
	db, err := sql.Open("sqlite", "file:"+filepath.Join(ts.Getenv("CHORUS_HOME"), "chorus.db")+"?mode=ro")
	ts.Check(err)
	defer db.Close()
	if !polltest.Soon(func() bool {
		var n int
		err = db.QueryRow(`SELECT count(*) FROM message_places WHERE key LIKE ? || '%'`, args[0]).Scan(&n)
		return err == nil && n > 0
	}) {
		ts.Fatalf("no message was ever recorded under %s: %v", args[0], err)
	}
}

func tamper(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, !neg && len(args) == 1 && tampering[args[0]] != "", "tamper WHAT")
	if args[0] == "audit-cut" { // whoever may cut the log may remove the guard beside it
		ts.Check(os.RemoveAll(filepath.Join(ts.Getenv("CHORUS_HOME"), "guard-chorus.db")))
	}
	db, err := sql.Open("sqlite", filepath.Join(ts.Getenv("CHORUS_HOME"), "chorus.db"))
	ts.Check(err)
	defer db.Close()
	_, err = db.Exec(tampering[args[0]])
	ts.Check(err)
}

func escapes(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, len(args) == 1, "[!] escapes FILE")
	text := ts.ReadFile(args[0])
	if strings.ContainsAny(text, "\x1b\u009b") == neg {
		ts.Fatalf("%s: escape codes: %v\n%q", args[0], !neg, text)
	}
}

// npmPackages fetches packages from npm.
func npmPackages(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: npm PACKAGE@VERSION…")
	}
	dir, err := npmtest.Fetch(context.Background(), args...)
	ts.Check(err)
	ts.Setenv("MODULES", filepath.Join(dir, "node_modules"))
}
