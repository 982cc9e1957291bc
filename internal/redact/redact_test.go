package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// planted are texts with the secret that must not be left of them.
func planted() []struct{ name, text, secret, kind string } {
	long, caps := random(40, alnum), random(16, upperDigits)
	jwtParts := "eyJ" + random(20, alnum) + ".eyJ" + random(30, alnum) + "." + random(43, alnumDash)
	bot := "M" + random(25, alnum) + "." + random(6, alnum) + "." + random(38, alnum)
	armour := "-----BEGIN OPENSSH PRIVATE KEY-----\n" + random(64, alnum) + "\n" + random(30, alnum) + "\n-----END OPENSSH PRIVATE KEY-----"
	return []struct{ name, text, secret, kind string }{
		{"anthropic", "key is sk-ant-api03-" + long + ".", long, "anthropic-key"},
		{"openai", "key sk-proj-" + long, long, "openai-key"},
		{"sk", "try sk-" + long + " again", long, "api-key"},
		{"aws", "id AKIA" + caps + ",", caps, "aws-key"},
		{"github", "ghp_" + long, long, "github-token"},
		{"github fine", "github_pat_" + long, long, "github-token"},
		{"gitlab", "glpat-" + long, long, "gitlab-token"},
		{"slack", "xoxb-" + long, long, "slack-token"},
		{"google", "AIza" + random(35, alnumDash), random(35, alnumDash), "google-key"},
		{"stripe", "sk_live_" + long, long, "stripe-key"},
		{"npm", "//registry/:_authToken=npm_" + long, long, "token"},
		{"escaped newline", `"line\nsk-ant-` + long + `"`, long, "anthropic-key"},
		{"inside a path", "keys/ghp_" + long, long, "github-token"},
		{"jwt", "cookie " + jwtParts + ";", jwtParts[4:], "jwt"},
		{"discord", "bot " + bot, bot, "discord-token"},
		{"webhook", "https://hooks.slack.com/services/T0000/B0000/" + long, long, "webhook"},
		{"private key", "before\n" + armour + "\nafter", armour[40:100], "private-key"},
		{"private key without an end", "before\n" + armour[:120], armour[40:100], "private-key"},
		{"bearer", "Authorization: Bearer " + long, long, "authorization"},
		{"basic", `curl -H "authorization: Basic ` + base64.StdEncoding.EncodeToString([]byte("ada:"+long)) + `"`, base64.StdEncoding.EncodeToString([]byte("ada:" + long)), "authorization"},
		{"bearer alone", "send Bearer " + long + " with it", long, "authorization"},
		{"url", "postgres://ada:pa55-word@db.example:5432/x", "pa55-word", "password"},
		{"url with user only", "https://:pa55@host/", "pa55", "password"},
		{"yaml", "password: swordfish\nuser: ada", "swordfish", "password"},
		{"ini", "passwd=swordfish", "swordfish", "password"},
		{"json", `{"user": "ada", "password": "swordfish"}`, "swordfish", "password"},
		{"json in json", `"{\"password\": \"swordfish\"}"`, "swordfish", "password"},
		{"go", `dbPassword := "swordfish"`, "swordfish", "password"},
		{"ruby", `'client_secret' => 'swordfish'`, "swordfish", "secret"},
		{"env", "API_TOKEN=swordfish", "swordfish", "token"},
		{"env with signs", "export DB_PASSWORD=a&b;c,d", "a&b;c,d", "password"},
		{"flag", "run --password=sw0rdfish --verbose", "sw0rdfish", "password"},
		{"query", "GET /x?api_key=" + long + "&y=1", long, "token"},
		{"token", "token: " + long, long, "token"},
		{"aws secret", "aws_secret_access_key = " + random(39, alnum) + "/", random(39, alnum), "token"},
		{"high entropy", "the code " + long + " works once", long, "high-entropy"},
	}
}

func TestFinds(t *testing.T) {
	t.Parallel()
	r := New(Options{})
	for _, c := range planted() {
		t.Run(c.name, func(t *testing.T) {
			got := r.Text(c.text)
			if strings.Contains(got, c.secret) || !strings.Contains(got, mark(c.kind)) {
				t.Fatalf("%q became %q", c.text, got)
			}
			if again := r.Text(got); again != got {
				t.Fatalf("again: %q became %q", got, again)
			}
		})
	}
}

func TestKeepsWhatStandsAround(t *testing.T) {
	t.Parallel()
	r := New(Options{Known: []string{"swordfish-7"}})
	for text, want := range map[string]string{
		"a postgres://ada:x1y2@db/x b":                             "a postgres://ada:[redacted:password]@db/x b",
		`{"password": "sw0rd", "n": 1}`:                            `{"password": "[redacted:password]", "n": 1}`,
		"Authorization: Bearer " + random(30, alnum) + "\nHost: x": "Authorization: Bearer [redacted:authorization]\nHost: x",
		"say swordfish-7!":                                         "say [redacted:known]!",
		"swordfish-7swordfish-7":                                   "[redacted:known][redacted:known]",
	} {
		if got := r.Text(text); got != want {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// Ordinary text stays as it is. The files are of the kinds that people read most.
func TestLeavesAlone(t *testing.T) {
	t.Parallel()
	r := New(Options{})
	lines := []string{
		"commit 3f786850e387550fdab836ed7e6dc881de23001b", "9b871512327c09ce91dd649b3f96a63b7408ef267c8cc5710114e629730cb61f  file.tar.gz",
		"550e8400-e29b-41d4-a716-446655440000", "01J0000000000000000000000A and 01ARZ3NDEKTSV4RRFFQ69G5FAV",
		"github.com/a/b v1.2.3 h1:vj9j/u1bqnvCEfJOwUhtlOARqs3+rkHYY13jYWTU97c=",
		`"integrity": "sha512-` + base64.StdEncoding.EncodeToString([]byte(random(64, alnum))) + `"`,
		"SHA256:" + random(43, alnum) + " ada@example (ED25519)", "x.py,sha256=" + random(43, alnumDash) + ",12",
		"data:image/png;base64," + random(400, alnum), "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + random(43, alnum),
		"sha256:9b871512327c09ce91dd649b3f96a63b7408ef267c8cc5710114e629730cb61f",
		"token := lexer.Next()", "token: string", "password string `json:\"password\"`", `password = os.Getenv("DB_PASSWORD")`,
		`if password == "" {`, "max_tokens: 4096", "PASSWORD=$DB_PASSWORD", "password: ${DB_PASSWORD}", "password: {{ .Values.password }}", "password: <your password>",
		`"password": "Enter your password"`, "self.password = self.config.password", "def login(user: str, password: str) -> None:",
		"nextToken = parseTokenFromResponseBody2", "rewriteValueAMD64_OpGetHiUint16x16", "OpRoundToEvenScaledResidueFloat32x16",
		"use Bearer token-based authentication", "Authorization: required", "sk-learn-like-estimators-are-good", "https://example.com:8080/a@b",
		"see /etc/passwd: it is a file", `cmd.Env = append(env, "PWD="+dir)`, "the secret: tell nobody", "git@github.com:ada/repo.git", "secretary: ada",
		"TestSomethingWithAVeryLongNameIndeed_AndMore2024Cases", "node_modules/.pnpm/@babel+core@7.24.0/node_modules/@babel/core",
	}
	for _, line := range lines {
		if got := r.Text(line); got != line {
			t.Errorf("%q became %q", line, got)
		}
	}
	cert := "-----BEGIN CERTIFICATE-----\n" + random(64, alnum) + "\n" + random(64, alnum) + "\n" + random(40, alnum) + "\n-----END CERTIFICATE-----\n"
	if got := r.Text(cert); got != cert {
		t.Errorf("a certificate became %q", got)
	}
	for _, file := range []string{"../../go.sum", "../../go.mod", "../../docs/ARCHITECTURE.md", "redact.go", "random.go", "known.go", "stream.go"} {
		data, err := os.ReadFile(filepath.FromSlash(file))
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Text(string(data)); got != string(data) {
			t.Errorf("%s: something was taken out", file)
		}
	}
}

func TestKnownForms(t *testing.T) {
	t.Parallel()
	secret := "p@ss word/with \"signs\" " + random(12, alnum)
	r := New(Options{Known: []string{secret, "short"}})
	quoted, err := json.Marshal(secret)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		secret, url.QueryEscape(secret), url.PathEscape(secret), string(quoted),
		base64.StdEncoding.EncodeToString([]byte(secret)), base64.URLEncoding.EncodeToString([]byte("a" + secret)), base64.StdEncoding.EncodeToString([]byte("ab" + secret + "c")),
	} {
		if got := r.Text("<" + text + ">"); !strings.Contains(got, mark("known")) || strings.Contains(got, text[8:len(text)-8]) {
			t.Errorf("%q became %q", text, got)
		}
	}
	if got := r.Text("a short word"); got != "a short word" {
		t.Errorf("a short value garbled the text: %q", got)
	}
}

func TestClipped(t *testing.T) {
	t.Parallel()
	r := New(Options{Known: []string{"swordfish-7"}})
	for text, want := range map[string]string{
		"say swordfish-7 now": "say [redacted:known] now", "say swordf": "say [redacted:clipped]", "say swo": "say swo", "swordfish-7": "[redacted:known]",
		"take ghp_abc": "take [redacted:clipped]", "take ghp_": "take ghp_", "": "",
	} {
		if got := r.Clipped(text); got != want {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestFromEnviron(t *testing.T) {
	t.Parallel()
	got := FromEnviron([]string{"HOME=/home/ada", "OPENAI_API_KEY=test-key-1", "BOT_TOKENS=first-one,second-one", "PWD=/home/ada", "EDITOR=vi", "AWS_ACCESS_KEY_ID=test-key-2", "X_SECRET=abc"})
	if want := "test-key-1 test-key-1 first-one,second-one first-one second-one test-key-2 test-key-2"; strings.Join(got, " ") != want {
		t.Fatalf("%q", got)
	}
}

// text draws something that is made of secrets, parts of them, and what stands around.
func text(t *rapid.T) string {
	var parts []string
	for _, p := range planted() {
		parts = append(parts, p.text, p.text[:len(p.text)/2], p.text[len(p.text)/2:])
	}
	for _, e := range examples() {
		parts = append(parts, e.head+e.rest, e.head, e.rest)
	}
	parts = append(parts, "\n", " ", "=", ":", "\"", "[redacted:", "[redacted:token]", "]", "password", "://", "@", "-----BEGIN ", "known-value-1", random(64, alnum)+"\n", "a", "\\n", "Bearer ", "12345678:A"+random(34, alnumDash), "aB38Q~"+random(34, alnum), "~")
	return strings.Join(rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(parts), rapid.StringN(0, 6, -1)), 0, 12).Draw(t, "text"), "")
}

func TestOnceIsEnough(t *testing.T) {
	t.Parallel()
	r := New(Options{Known: []string{"known-value-1"}})
	rapid.Check(t, func(t *rapid.T) {
		once := r.Text(text(t))
		if twice := r.Text(once); twice != once {
			t.Fatalf("%q became %q", once, twice)
		}
	})
}

func TestPiecesAreTheWhole(t *testing.T) {
	t.Parallel()
	r := New(Options{Known: []string{"known-value-1"}})
	rapid.Check(t, func(t *rapid.T) {
		whole := text(t)
		s := r.Stream()
		var got strings.Builder
		for rest := whole; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			got.WriteString(s.Write(rest[:n]))
			rest = rest[n:]
		}
		got.WriteString(s.Flush())
		if want := r.Text(whole); got.String() != want {
			t.Fatalf("%q: in pieces %q, whole %q", whole, got.String(), want)
		}
	})
}

// A line that never ends is given out all the same, and words are not torn.
func TestStreamOfALongLine(t *testing.T) {
	t.Parallel()
	s := New(Options{}).Stream()
	secret := "ghp_" + random(40, alnum)
	line := strings.Repeat("word "+secret+" ", 2000)
	var got strings.Builder
	for _, piece := range strings.SplitAfter(line, "7") {
		got.WriteString(s.Write(piece))
		if len(s.held) > 2*maxHeld {
			t.Fatalf("%d bytes are held", len(s.held))
		}
	}
	got.WriteString(s.Flush())
	if strings.Contains(got.String(), "ghp_") || strings.Count(got.String(), "word ") != 2000 {
		t.Fatal("a secret was torn")
	}
}

func TestJSONStaysJSON(t *testing.T) {
	t.Parallel()
	r := New(Options{Known: []string{"known-value-1"}})
	in := `{"b":1.50, "a":["x<y","known-value-1"],"password":"swordfish","deep":{"note":"it is sk-ant-` + random(20, alnum) + `"},"password2":["plain"]}`
	want := `{"b":1.50, "a":["x<y","[redacted:known]"],"password":"[redacted:password]","deep":{"note":"it is [redacted:anthropic-key]"},"password2":["plain"]}`
	if got := string(r.JSON([]byte(in))); got != want {
		t.Fatalf("%s", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		data, err := json.Marshal(map[string]any{text(t): text(t), "list": []string{text(t)}, "secret": text(t)})
		if err != nil {
			t.Fatal(err)
		}
		out := r.JSON(data)
		if !json.Valid(out) || string(r.JSON(out)) != string(out) {
			t.Fatalf("%s became %s", data, out)
		}
	})
}

func TestHandler(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	r := New(Options{Known: []string{"known-value-1"}})
	log := slog.New(Handler(slog.NewTextHandler(&out, nil), func() *Redactor { return r }))
	log.With("header", "known-value-1").WithGroup("g").Info("it says known-value-1", "err", errors.New("bad known-value-1"), "n", 3,
		slog.Group("h", "password", "swordfish", "list", []string{"known-value-1"}), "raw", []byte("known-value-1"), "fine", []int{1})
	if got := out.String(); strings.Contains(got, "known-value-1") || strings.Contains(got, "swordfish") || !strings.Contains(got, "g.n=3") || !strings.Contains(got, "g.fine=[1]") {
		t.Fatal(got)
	}
}

func FuzzText(f *testing.F) {
	for _, p := range planted() {
		f.Add(p.text)
	}
	f.Add("[redacted:token]=[redacted:]")
	r := New(Options{Known: []string{"known-value-1"}})
	f.Fuzz(func(t *testing.T, text string) {
		once := r.Text(text)
		if twice := r.Text(once); twice != once {
			t.Fatalf("%q, then %q, then %q", text, once, twice)
		}
		if out := r.JSON([]byte(text)); json.Valid([]byte(text)) != json.Valid(out) && json.Valid([]byte(text)) {
			t.Fatalf("%q is no JSON any more: %q", text, out)
		}
	})
}

// BenchmarkText is one megabyte of what tools give back, with some secrets in it.
func BenchmarkText(b *testing.B) {
	var all strings.Builder
	for _, file := range []string{"../../go.sum", "assign.go", "json.go", "redact_test.go"} {
		data, err := os.ReadFile(file)
		if err != nil {
			b.Fatal(err)
		}
		all.Write(data)
	}
	text := strings.Repeat(all.String(), 1<<20/all.Len()+1)[:1<<20]
	r := New(Options{Known: []string{"known-value-1", random(30, alnum), random(50, alnum)}})
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		r.Text(text)
	}
}

// Our own tokens are hidden; the ids that stand for them are not.
func TestOwnTokens(t *testing.T) {
	t.Parallel()
	r := New(Options{})
	text := "by token:01m7f6yymxnckmeac3n0tt041g with chorus_" + strings.Repeat("ABCDEFGHJKMNPQ234567ABCDEF", 2)
	if got, want := r.Text(text), "by token:01m7f6yymxnckmeac3n0tt041g with [redacted:chorus-token]"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, around := range []string{"*denied by %s* no", "denied by %s: no", "it was %s.", "__%s__", `{"by":"%s"}`} {
		if text := fmt.Sprintf(around, "token:01m7f6yymxnckmeac3n0tt041g"); r.Text(text) != text {
			t.Errorf("%q became %q", text, r.Text(text))
		}
	}
	if got := r.Text("token: 91m7f6yymxnckmeac3n0tt041g"); !strings.Contains(got, "redacted") {
		t.Errorf("what only looks like an id stays: %q", got)
	}
}
