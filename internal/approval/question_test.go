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
		"seven":                               "say which value is whose, for example count: seven",
		`{"count":`:                           "this is not a JSON object: it ends too soon",
		`{"count":7,"size":"S"} and a gift`:   `this is not a JSON object: "and a gift" stands behind it; leave that out, or write everything into the object`,
		`{"count":7,"size":"S"}}`:             `this is not a JSON object: "}" stands behind it; leave that out, or write everything into the object`,
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
