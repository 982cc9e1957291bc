package approval

import "testing"

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
