package egress

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

// fuzzRules hold one secret for api.example.com.
func fuzzRules(t testing.TB, value string) *ruleset {
	set, err := compile(Rules{Secrets: []Secret{secret("key", value, "api.example.com")}})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// FuzzSubstitute: no input makes it panic, lie about a length, or give the value to a
// target that it is not for.
func FuzzSubstitute(f *testing.F) {
	f.Add("Bearer "+mark, "/a?b="+mark, "text/plain", mark, true, true, true)
	f.Add("Basic "+base64.StdEncoding.EncodeToString([]byte("a:"+mark)), "/%7B%7Bsecret%3Akey%7D%7D", "application/json", `{"a":"`+mark+`"}`, false, true, false)
	f.Add("{{secret:key}}}}{{secret:{{secret:key}}", "/%zz?%", "application/x-www-form-urlencoded", "%7B%7Bsecret%3Akey}}", true, false, true)
	f.Add("{{secret:none}}", "/", "multipart/form-data; boundary=x", "{{secret:none}}", true, true, false)
	f.Add("", "", "text/plain; charset=\"", "{{secret:", true, true, true)
	const value = "fake-VALUE-to-find"
	f.Fuzz(func(t *testing.T, header, uri, kind, body string, right, secure, chunked bool) {
		if strings.Contains(header+uri+kind+body, "VALUE") {
			return
		}
		to := target{host: "api.example.com", port: "443", tls: secure}
		if !right {
			to.host = "other.example.com"
		}
		s := newSubstituter(fuzzRules(t, value), to)
		var all strings.Builder
		h := http.Header{"X-A": {header}, "Authorization": {header}, "Content-Type": {kind}}
		if s.header(h) == nil {
			_ = h.Write(&all)
			if raw, ok := strings.CutPrefix(h.Get("Authorization"), "Basic "); ok {
				decoded, _ := base64.StdEncoding.DecodeString(raw)
				all.Write(decoded)
			}
		}
		if u, err := url.ParseRequestURI(uri); err == nil {
			if u, err = s.url(u); err == nil {
				all.WriteString(u.String())
			}
		}
		length := int64(len(body))
		if chunked {
			length = -1
		}
		out, n, _, err := s.body(http.Header{"Content-Type": {kind}}, strings.NewReader(body), length)
		if err == nil {
			sent, err := io.ReadAll(out)
			if err == nil && n >= 0 && int64(len(sent)) != n {
				t.Errorf("said %d, sent %d", n, len(sent))
			}
			if _, scanned := notationOf(http.Header{"Content-Type": {kind}}); scanned && plainPlaceholder().Match(sent) {
				t.Errorf("a placeholder is left in %q", sent)
			}
			all.Write(sent)
		}
		if (!right || !secure) && (strings.Contains(all.String(), "VALUE") || len(s.values) > 0) {
			t.Errorf("the value went to %v (tls %v): %s", to, secure, all.String())
		}
	})
}

// FuzzHead: what is taken for a request is one to net/http too, and has one length.
func FuzzHead(f *testing.F) {
	f.Add([]byte("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n"))
	f.Add([]byte("POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc"))
	f.Add([]byte("CONNECT a:1 HTTP/1.1\r\n\r\n\x16\x03"))
	f.Add([]byte("GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n"))
	f.Add([]byte("\r\n\r\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		req, _, err := readRequest(bufio.NewReaderSize(bytes.NewReader(raw), 4<<10), func() {})
		if err != nil {
			return
		}
		if n := len(req.Header["Content-Length"]) + len(req.TransferEncoding); n > 1 {
			t.Errorf("%d lengths in %q", n, raw)
		}
		for name, values := range req.Header {
			if !isToken(name) || !noControlChars(strings.Join(values, "")) {
				t.Errorf("%q: %q", name, values)
			}
		}
	})
}

// FuzzPlace: a target is open only to a rule that ends in it.
func FuzzPlace(f *testing.F) {
	for _, seed := range [][2]string{{"*.example.com", "a.example.com:443"}, {"example.com:8080", "EXAMPLE.com.:8080"}, {"[::1]:80", "[::1]:80"}, {"*", "0x7f.1"}, {"1.1.1.1", "[::ffff:1.1.1.1]"}, {"::1", "[::1]:443"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, rule, ask string) {
		set, err := compile(Rules{Hosts: []string{rule}})
		to, ok := parseTarget(ask, true)
		if err != nil || !ok || !set.allows(to.host, to.port) {
			return
		}
		p := set.patterns[0]
		switch {
		case p.port != "" && p.port != to.port, p.port == "" && to.port != "80" && to.port != "443":
			t.Errorf("%q opens the port of %q", rule, ask)
		case p.wildcard && numeric(to.host), !p.wildcard && p.host != to.host, !strings.HasSuffix(to.host, p.host):
			t.Errorf("%q opens %q", rule, ask)
		}
	})
}

// TestRedactionAcrossReads: however a stream is cut, the result is that of the whole, and no
// value is in it.
func TestRedactionAcrossReads(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.StringMatching(`[ab/]{2,10}`), 1, 3).Draw(t, "values")
		var needles []needle
		for _, v := range values {
			needles = append(needles, newNeedle(v, []byte("#")))
		}
		slicesByLength(needles)
		text := rapid.StringMatching(`([abcA/]|\\/|\\u0061|\\\\/|%2F|&#97;|\\u00|&|\\){0,40}`).Draw(t, "text")
		want := redactText(text, needles)
		for _, v := range values {
			if strings.Contains(want, v) {
				t.Fatalf("%q is in %q", v, want)
			}
		}
		var src io.Reader = strings.NewReader(text)
		switch rapid.IntRange(0, 3).Draw(t, "cut") {
		case 0:
			src = iotest.OneByteReader(src)
		case 1:
			src = iotest.HalfReader(src)
		case 2:
			src = iotest.DataErrReader(src)
		}
		got, err := io.ReadAll(newRedactor(src, needles))
		if err != nil || string(got) != want {
			t.Fatalf("%q became %q in pieces, %q as a whole (%v)", text, got, want, err)
		}
		strict := newRedactor(strings.NewReader(text), needles)
		strict.strict = true
		passed, err := io.ReadAll(strict)
		if hit := want != text; errors.Is(err, errEcho) != hit || !strings.HasPrefix(text, string(passed)) {
			t.Fatalf("strict: %q %v", passed, err)
		}
	})
}

// TestSpellingsAreFound: a value that comes back with its characters spelled otherwise, or in other case, is found,
// also when every byte comes alone.
func TestSpellingsAreFound(t *testing.T) {
	t.Parallel()
	value := `aB3/d+e&f"g<h ` + testKey
	set, err := compile(Rules{Secrets: []Secret{secret("key", value, "api.example.com")}})
	if err != nil {
		t.Fatal(err)
	}
	needles := newSubstituter(set, target{"api.example.com", "443", true}).needles()
	each := func(format string) string {
		var out strings.Builder
		for _, c := range []byte(value) {
			fmt.Fprintf(&out, format, c)
		}
		return out.String()
	}
	inner, err := json.Marshal(strings.ReplaceAll(asJSON(value), "/", `\/`))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"slashes of JSON": strings.ReplaceAll(asJSON(value), "/", `\/`), "JSON": each(`\u%04x`), "JSON in capitals": each(`\u%04X`), "JSON in JSON": string(inner),
		"decimal entities": each("&#%d;"), "hexadecimal entities": each("&#x%x;"), "entities": html.EscapeString(value),
		"an address in small letters": strings.ToLower(url.QueryEscape(value)), "all of an address": each("%%%02x"),
		"capitals": strings.ToUpper(value), "small": strings.ToLower(value), "hex in capitals": strings.ToUpper(hex.EncodeToString([]byte(value))),
		"one character": value[:8] + `\u` + fmt.Sprintf("%04x", value[8]) + value[9:],
	} {
		got, err := io.ReadAll(newRedactor(iotest.OneByteReader(strings.NewReader("<<"+text+">>")), needles))
		if err != nil || !strings.Contains(string(got), placeholder("key")) || len(got) > len("<<>>")+len(placeholder("key"))+2 {
			t.Errorf("%s: %s became %s (%v)", name, text, got, err)
		}
	}
	for _, text := range []string{`{"a":"b\/c","d":"\u00e9"}`, "a=%41&b=%zz", "&amp; &unknown; & \\"} {
		if got, err := io.ReadAll(newRedactor(iotest.OneByteReader(strings.NewReader(text)), needles)); err != nil || string(got) != text {
			t.Errorf("%q became %q (%v)", text, got, err)
		}
	}
}

func slicesByLength(needles []needle) {
	for i := range needles {
		for j := i + 1; j < len(needles); j++ {
			if len(needles[j].text) > len(needles[i].text) {
				needles[i], needles[j] = needles[j], needles[i]
			}
		}
	}
}

// TestEncodingsAreFound: base64 of anything around a value is found too.
func TestEncodingsAreFound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringMatching(`[!-~]{12,40}`).Draw(t, "value")
		before, after := rapid.StringN(0, 9, 30).Draw(t, "before"), rapid.StringN(0, 9, 30).Draw(t, "after")
		set, err := compile(Rules{Secrets: []Secret{secret("key", value, "api.example.com")}})
		if err != nil {
			t.Fatal(err)
		}
		needles := newSubstituter(set, target{"api.example.com", "443", true}).needles()
		for name, text := range map[string]string{
			"as it is": before + value + after, "base64": base64.StdEncoding.EncodeToString([]byte(before + value + after)), "base64 for URLs": base64.URLEncoding.EncodeToString([]byte(before + value + after)),
			"a query": url.QueryEscape(before + value + after), "a path": url.PathEscape(before + value + after), "JSON": asJSON(before + value + after),
		} {
			if got := redactText(text, needles); !strings.Contains(got, mark) {
				t.Fatalf("%s: %q stays in %q", name, value, got)
			}
		}
	})
}

func TestRulesThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"", " ", "a b", "http://a.example", "a.example/x", "a.example:", "a.example:0", "a.example:70000", "a.example:080", "*.", "*a.example", "a.*.example", "*.1.2.3.4", "[::1", "[fe80::1%lo]:80", "ö.example", ".a", "a..b", "-a", "user@a.example"} {
		if _, err := compile(Rules{Hosts: []string{host}}); err == nil {
			t.Errorf("host %q was taken", host)
		}
	}
	ok := func() (string, error) { return testKey, nil }
	for name, s := range map[string]Secret{
		"no name": {"", ok, nil}, "a brace": {"a}", ok, nil}, "a long name": {strings.Repeat("a", 65), ok, nil}, "a line": {"a\n", ok, nil}, "no value": {"a", nil, nil},
		"everywhere": {"a", ok, []string{"*"}}, "everywhere on a port": {"a", ok, []string{"*:443"}}, "a bad host": {"a", ok, []string{"a b"}},
	} {
		if _, err := compile(Rules{Secrets: []Secret{s}}); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	if _, err := compile(Rules{Secrets: []Secret{{"a", ok, nil}, {"a", ok, nil}}}); err == nil {
		t.Error("a secret was taken twice")
	}
	if _, err := Listen(t.Context(), "", Rules{Hosts: []string{"a b"}}, Options{}); err == nil {
		t.Error("Listen took a bad rule")
	}
}
