package approval

import (
	"errors"
	"fmt"
	"testing"

	"chorus/internal/chat"
)

// What is filled in in a form is written as people write it; only where that could be misread it is an object.
func TestAnswerText(t *testing.T) {
	t.Parallel()
	for want, values := range map[string]map[string][]string{
		"":                                  {"name": {""}, "tags": nil},
		"count: 7\nname: Ada":               {"name": {" Ada "}, "count": {"7"}, "gift": {""}},
		"tags: a, b":                        {"tags": {"a", "b"}},
		`{"name":"Ada; of London"}`:         {"name": {"Ada; of London"}},
		`{"text":"one\ntwo"}`:               {"text": {"one\ntwo"}},
		`{"name":"Ada","tags":["a,b","c"]}`: {"name": {"Ada"}, "tags": {"a,b", "c"}},
		`{"a:b":"c"}`:                       {"a:b": {"c"}},
	} {
		if got := AnswerText(values); got != want {
			t.Errorf("%q: %q, not %q", values, got, want)
		}
	}
}

// What people write is read as the fields want it, however it is written; what does not fit is named with its field, all of it at once where asked.
func TestReadAnswer(t *testing.T) {
	t.Parallel()
	fields := []chat.Field{{Name: "count", Label: "How many", Kind: "integer"}, {Name: "size", Label: "Size", Choices: []chat.Choice{{Value: "S", Label: "small"}, {Value: "M", Label: "medium"}}},
		{Name: "gift", Label: "Gift", Kind: "boolean", Optional: true}, {Name: "tags", Label: "Tags", Kind: "list", Several: true, Optional: true, Choices: []chat.Choice{{Value: "a", Label: "a"}, {Value: "b", Label: "b"}}},
		{Name: "weight", Label: "Weight", Kind: "number", Optional: true}}
	for text, want := range map[string]string{
		"count: 7\nsize: Medium; gift: no":                          "map[count:7 gift:false size:M]",
		`{"count":1000000,"size":"s","tags":["a","B"],"gift":true}`: "map[count:1000000 gift:true size:S tags:[a b]]",
		"count=7\nsize=S\ntags: a, b\nweight: 1.5":                  "map[count:7 size:S tags:[a b] weight:1.5]",
		"count: 7":                            "size is missing",
		"count: 1e3\nsize: S":                 `count must be a whole number, not "1e3"`,
		"count: 7\nsize: XXL":                 `size cannot be "XXL": it is one of S = small, M = medium`,
		"count: 7\nsize: S\nweight: Infinity": `weight must be a number, not "Infinity"`,
		"count: 7\nsize: S\ntags: a, c":       `tags cannot be "c": it is some of a, b, may be left out`,
		"count: 7\nsize: S\ngift: perhaps":    `gift must be yes or no, not "perhaps"`,
		"seven":                               "say which value belongs to which field, for example count: seven",
		`{"count":`:                           "this is not a JSON object: it is incomplete",
		`{"count":7,"size":"S"} and a gift`:   `this is not a JSON object: "and a gift" follows it; remove that, or write everything into the object`,
		`{"count":7,"size":"S"}}`:             `this is not a JSON object: "}" follows it; remove that, or write everything into the object`,
	} {
		values, err := ReadAnswer(fields, text)
		if got := fmt.Sprint(values); err == nil && got != want || err != nil && err.Error() != want {
			t.Errorf("%q: %s, %v", text, got, err)
		}
	}
	wrong := Misfits(fields, "count: many\ngift: no")
	if fmt.Sprint(wrong) != `map[count:must be a whole number, not "many" size:is missing]` {
		t.Errorf("%v", wrong)
	}
	var misfit *Misfit
	if _, err := ReadAnswer(fields, ""); !errors.As(err, &misfit) || misfit.Field != "count" {
		t.Errorf("%v", err)
	}
	if values, err := ReadAnswer(fields[2:3], ""); err != nil || len(values) != 0 {
		t.Errorf("%v %v", values, err)
	}
	if values, err := ReadAnswer([]chat.Field{{Name: "sure", Kind: "boolean"}}, ""); err != nil || values["sure"] != true {
		t.Errorf("a yes alone is %v %v", values, err)
	}
	if how := HowToAnswer(fields[:2]); how != "count (a whole number): How many\nsize (one of S = small, M = medium): Size\nAnswer with a line for each, as count: VALUE; what is left out stays as it is." {
		t.Errorf("%s", how)
	}
}

// A value keeps to the bounds of its field, and whoever is asked is told them before and after.
func TestBounds(t *testing.T) {
	t.Parallel()
	one, ten := 1.0, 10.0
	field := func(kind string, b chat.Bounds) chat.Field {
		return chat.Field{Name: "x", Label: "X", Kind: kind, Bounds: b}
	}
	for _, tt := range []struct {
		f          chat.Field
		said, want string // "": it fits
		hint       string
	}{
		{field("integer", chat.Bounds{Min: &one, Max: &ten}), "10", "", "a whole number from 1 to 10"},
		{field("integer", chat.Bounds{Min: &one, Max: &ten}), "11", "x must be at most 10", "a whole number from 1 to 10"},
		{field("number", chat.Bounds{Min: &one}), "0.5", "x must be at least 1", "a number, at least 1"},
		{field("", chat.Bounds{MinLength: 2, MaxLength: 4}), "ä", "x must have at least 2 characters, not 1", "text of 2 to 4 characters"},
		{field("", chat.Bounds{MinLength: 2, MaxLength: 4}), "äöüß", "", "text of 2 to 4 characters"},
		{field("", chat.Bounds{MaxLength: 4}), "abcde", "x must have at most 4 characters, not 5", "text of at most 4 characters"},
		{field("", chat.Bounds{Format: "email"}), "ada@example.org", "", "an email address, as ada@example.org"},
		{field("", chat.Bounds{Format: "email"}), "Ada <ada@example.org>", `x must be an email address, as ada@example.org, not "Ada <ada@example.org>"`, "an email address, as ada@example.org"},
		{field("", chat.Bounds{Format: "uri"}), "example.org", `x must be an address, as https://example.org/page, not "example.org"`, "an address, as https://example.org/page"},
		{field("", chat.Bounds{Format: "uri"}), "mailto:ada@example.org", "", "an address, as https://example.org/page"},
		{field("", chat.Bounds{Format: "date"}), "2026-02-30", `x must be a date, as 2026-11-18, not "2026-02-30"`, "a date, as 2026-11-18"},
		{field("", chat.Bounds{Format: "date-time"}), "2026-11-18T15:04:05+01:00", "", "a date and time, as 2026-11-18T15:04:05Z"},
		{field("", chat.Bounds{Format: "date-time"}), "2026-11-18", `x must be a date and time, as 2026-11-18T15:04:05Z, not "2026-11-18"`, "a date and time, as 2026-11-18T15:04:05Z"},
		{field("", chat.Bounds{Pattern: "^[a-z]+$"}), "Ada", "x must match ^[a-z]+$", ""},
		{field("", chat.Bounds{Pattern: "(?=x)"}), "Ada", "", ""}, // Go cannot read it: whoever asks will
		{field("list", chat.Bounds{MinItems: 2, MaxItems: 2}), "a", "x must have at least 2 values, not 1", "several, with commas"},
		{field("list", chat.Bounds{MinItems: 1, MaxItems: 2}), "a, b, c", "x must have at most 2 values, not 3", "several, with commas"},
	} {
		_, err := ReadValue(tt.f, tt.said)
		whole := Misfits([]chat.Field{tt.f}, "x: "+tt.said)["x"]
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != tt.want || got != "" && got != "x "+whole || got == "" && whole != "" {
			t.Errorf("%+v, %q: %q and %q, not %q", tt.f.Bounds, tt.said, got, whole, tt.want)
		}
		if hint := Hint(tt.f); hint != tt.hint {
			t.Errorf("%+v is said to be %q", tt.f.Bounds, hint)
		}
	}
	if _, err := ReadAnswer([]chat.Field{field("list", chat.Bounds{MaxItems: 1})}, `{"x":["a","b"]}`); err == nil {
		t.Error("a list of an object is not looked at")
	}
}
