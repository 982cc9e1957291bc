package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strings"
	"testing"
)

// each spells every byte of a text by a format.
func each(text, format string) string {
	var out strings.Builder
	for _, c := range []byte(text) {
		fmt.Fprintf(&out, format, c)
	}
	return out.String()
}

// wrap breaks a text into lines as the program base64 does.
func wrap(text string) string {
	var out strings.Builder
	for ; len(text) > 76; text = text[76:] {
		out.WriteString(text[:76] + "\n")
	}
	return out.String() + text
}

// A known value is found in every spelling in which a program may give it back.
func TestKnownSpellings(t *testing.T) {
	t.Parallel()
	secret := "aB3/d+e&f-" + random(14, alnum)
	r := New(Options{Known: []string{secret, "x7/q9w2e"}})
	twice, err := json.Marshal(strings.ReplaceAll(secret, "/", `\/`))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"slashes of JSON": strings.ReplaceAll(secret, "/", `\/`), "JSON": each(secret, `\u%04x`), "JSON in capitals": each(secret, `\u%04X`), "JSON in JSON": string(twice),
		"one escaped": secret[:4] + each(secret[4:5], `\u%04x`) + secret[5:], "hex escapes": each(secret, `\x%02x`),
		"HTML": html.EscapeString(secret), "decimal entities": each(secret, "&#%d;"), "hexadecimal entities": each(secret, "&#x%X;"),
		"an address": url.QueryEscape(secret), "an address in small letters": strings.ReplaceAll(url.QueryEscape(secret), "%2F", "%2f"), "every byte of an address": each(secret, "%%%02x"),
		"capitals": strings.ToUpper(secret), "small": strings.ToLower(secret),
		"hex": hex.EncodeToString([]byte(secret)), "hex in capitals": strings.ToUpper(hex.EncodeToString([]byte(secret))),
		"base64": base64.StdEncoding.EncodeToString([]byte(secret)), "base64 in an address": url.QueryEscape(base64.StdEncoding.EncodeToString([]byte("u:" + secret))),
		"base64 over two lines": wrap(base64.StdEncoding.EncodeToString([]byte(strings.Repeat("some text ", 5) + secret + strings.Repeat(" more text", 9)))),
		"a short one in base64": base64.StdEncoding.EncodeToString([]byte("user:x7/q9w2e")),
	} {
		for _, got := range []string{r.Text("<" + text + ">"), func() string { s := r.Stream(); return s.Write("<"+text+">\n") + s.Flush() }()} {
			if !strings.Contains(got, mark("known")) {
				t.Errorf("%s: %s became %s", name, text, got)
			}
		}
	}
	for _, text := range []string{`a\nb \/ %41 &amp; &#65; C:\users\x`, "100% &c. \\"} {
		if got := r.Text(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func FuzzUnescape(f *testing.F) {
	for _, text := range []string{`a\u0041b`, "%4", "&amp", `\`, "&#x2F;", `\u00`, "a%zz"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		v, open, ok := Unescape(text)
		if open < 0 || open > len(text) {
			t.Fatalf("open %d of %d", open, len(text))
		}
		if !ok {
			return
		}
		if v.At(len(v.Text)) != len(text) || bytes.Equal(v.Text, text) {
			t.Fatalf("%q became %q", text, v.Text)
		}
		for i := range v.Text {
			if v.At(i) > v.At(i+1) || v.At(i) >= len(text) {
				t.Fatalf("%q: byte %d stood at %d, the next at %d", text, i, v.At(i), v.At(i+1))
			}
		}
	})
}
