package sheet

import (
	"html"
	"html/template"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

type thing struct {
	Name  string
	Inner *thing
	List  []string
	Map   map[string]int
	At    time.Time
	Kind  kind
	Body  []byte
}

type kind string

func fill(t interface {
	Fatal(...any)
	Helper()
}, text string, data any) string {
	t.Helper()
	s := New(FuncMap{"upper": strings.ToUpper, "raw": func(s string) HTML { return HTML(s) }, "two": func(a, b string) string { return a + b }})
	if err := s.Parse("t", text); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := s.Execute(&out, "t", data); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestFilling(t *testing.T) {
	t.Parallel()
	data := map[string]any{"T": thing{Name: "<a> & \"b\"", Inner: &thing{Name: "in"}, List: []string{"x", "y"}, Map: map[string]int{"b": 2, "a": 1}, Kind: "k", Body: []byte("bytes")}, "Nil": (*thing)(nil), "N": 3}
	for text, want := range map[string]string{
		`{{.T.Name}}`:                                                               "&lt;a&gt; &amp; &#34;b&#34;",
		`<p title="{{.T.Name}}">`:                                                   `<p title="&lt;a&gt; &amp; &#34;b&#34;">`,
		`{{raw "<b>"}}`:                                                             "<b>",
		`{{.T.Inner.Name}}{{.T.Kind}}`:                                              "ink",
		`{{range .T.List}}{{.}},{{else}}none{{end}}`:                                "x,y,",
		`{{range $i, $v := .T.List}}{{$i}}{{$v}}{{end}}`:                            "0x1y",
		`{{range $k, $v := .T.Map}}{{$k}}{{$v}}{{end}}`:                             "a1b2",
		`{{range .Missing}}x{{else}}none{{end}}`:                                    "none",
		`{{with .T.Inner}}{{.Name}}{{else}}no{{end}}`:                               "in",
		`{{with .Nil}}x{{else}}no{{end}}`:                                           "no",
		`{{if and .T.Name (not .Missing)}}y{{end}}`:                                 "y",
		`{{if or .Missing .Nil "z"}}y{{end}}`:                                       "y",
		`{{if eq .T.Kind "k"}}y{{end}}{{if ne .N 4}}z{{end}}`:                       "yz",
		`{{$x := "1"}}{{if .N}}{{$x = "2"}}{{end}}{{$x}}`:                           "2",
		`{{upper "a" | two "b"}}`:                                                   "bA",
		`{{len .T.List}}{{index .T.Map "b"}}{{index .T.Map "z"}}`:                   "22",
		`{{printf "%s-%d" .T.Kind .N}}`:                                             "k-3",
		`{{printf "%s" .T.Body}}`:                                                   "bytes",
		`{{define "d"}}<i>{{.}}</i>{{end}}{{template "d" .N}}{{template "d" "<"}}`:  "<i>3</i><i>&lt;</i>",
		`{{range .T.List}}{{if eq . "x"}}{{continue}}{{end}}{{.}}{{break}}{{end}}`:  "y",
		`<a href="{{url "javascript:alert(1)"}}"></a><a href="/x/{{.T.Kind}}"></a>`: `<a href="#"></a><a href="/x/k"></a>`,
		`{{/* nothing */}}x`:                                                        "x",
	} {
		if got := fill(t, text, data); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// What could be more than text where it stands is refused before anything is shown.
func TestRefusedPlaces(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`<p {{.X}}>`, `<p class={{.X}}>`, `<p title='{{.X}}'>`, `<a href="{{.X}}">`, `<form action="{{.X}}">`, `<img src="{{printf "%s" .X}}">`,
		`<script>{{.X}}</script>`, `<style>{{.X}}</style>`, `<p onclick="{{.X}}">`, `<p style="{{.X}}">`, `<!-- {{.X}} -->`, `<p title="x`, `<p {{if .X}}title="{{end}}">`,
		`<p {{template "x"}}>{{define "x"}}{{end}}`,
	} {
		if err := New(nil).Parse("t", text); err == nil {
			t.Errorf("%s was taken", text)
		}
	}
	for _, text := range []string{
		`<p {{if .X}}class="a"{{end}}>{{.X}}</p>`, `<a href="/s/{{.X}}?q={{.X}}">`, `<a href="{{url .X}}">`, `<p class="a {{if .X}}b{{else}}c{{end}}">`, `1 < 2 {{.X}}`, `<script src="/x.js"></script>{{.X}}`,
		`<input value="{{.X}}" {{if .X}}checked{{end}}>{{.X}}`,
	} {
		if err := New(nil).Parse("t", text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{{.Nope}}`, `{{.Name.Deep}}`, `{{.Inner.Name}}`, `{{template "gone"}}`, `{{upper 3}}`, `{{upper}}`, `{{range .Name}}{{end}}`, `{{.Name "arg"}}`, `{{define "r"}}{{template "r"}}{{end}}{{template "r"}}`} {
		s := New(FuncMap{"upper": strings.ToUpper})
		if err := s.Parse("t", text); err != nil {
			t.Fatal(text, err)
		}
		var out strings.Builder
		if err := s.Execute(&out, "t", thing{Name: "n"}); err == nil || out.Len() > 0 {
			t.Errorf("%s: %v, %q was written", text, err, out.String())
		}
	}
}

// Text stays text, and comes out as html/template would have it.
func TestAsTheStandardLibrary(t *testing.T) {
	t.Parallel()
	const text = `<p title="{{.}}">{{.}}</p>{{if .}}<a href="/x?q={{.}}">{{.}}</a>{{end}}`
	theirs := template.Must(template.New("t").Parse(text))
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.OneOf(rapid.String(), rapid.StringMatching(`[<>"'&=/a-z ]{0,20}`)).Draw(t, "value")
		got := fill(t, text, value)
		if strings.Count(got, "<") != map[bool]int{true: 4, false: 2}[value != ""] || strings.Count(got, `"`) != map[bool]int{true: 4, false: 2}[value != ""] {
			t.Fatalf("%q breaks out: %s", value, got)
		}
		var want strings.Builder
		if err := theirs.Execute(&want, value); err != nil {
			t.Fatal(err)
		}
		// Theirs makes addresses of what stands in them, and shows what is no character.
		if strings.ContainsAny(value, "\x00") {
			return
		}
		if a, b := html.UnescapeString(between(got)), html.UnescapeString(between(want.String())); a != b {
			t.Fatalf("%q: %q, theirs %q", value, a, b)
		}
	})
}

func between(text string) string {
	_, rest, _ := strings.Cut(text, ">")
	inside, _, _ := strings.Cut(rest, "</p>")
	return inside
}
