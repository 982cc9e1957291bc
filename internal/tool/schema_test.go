package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"chorus/internal/tool"
)

// raw is a tool that brings a schema of its own.
type raw struct {
	name   string
	schema string
}

func (r raw) Spec() tool.Spec {
	return tool.Spec{Name: r.name, Description: "Raw.", Schema: json.RawMessage(r.schema), Risk: tool.Medium}
}
func (raw) Access([]byte) []tool.Access { return nil }
func (raw) Run(_ context.Context, args []byte) (tool.Result, error) {
	return tool.OK(string(args)), nil
}

// use forwards calls as use_tool does.
type use struct{ raw }

func (use) Forward(args []byte) (string, []byte, error) {
	var in struct {
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	}
	if err := json.Unmarshal(args, &in); err != nil || in.Name == "" {
		return "", nil, errors.New("name a tool")
	}
	return in.Name, in.Args, nil
}

func TestForeignSchemas(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, schema, args string
		want               string // the corrected arguments, or
		wrong              string // a part of the answer
	}{
		{"plain", `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`, `{"n":"3"}`, `{"n":3}`, ""},
		{"missing", `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`, `{}`, "", "'n' is missing"},
		{"draft 4 bounds", `{"type":"object","properties":{"n":{"type":"integer","minimum":0,"exclusiveMinimum":true}},"required":["n"]}`, `{"n":3}`, `{"n":3}`, ""},
		{"draft 4 bounds, still typed", `{"type":"object","properties":{"n":{"type":"integer","exclusiveMinimum":true}}}`, `{"n":"x"}`, "", "must be an integer"},
		{"draft 3 required", `{"type":"object","properties":{"a":{"type":"string","required":true}},"required":true}`, `{"a":"b"}`, `{"a":"b"}`, ""},
		{"tuple", `{"type":"object","properties":{"a":{"type":"array","items":[{"type":"string"}]}}}`, `{"a":["x"]}`, `{"a":["x"]}`, ""},
		{"null property", `{"type":"object","properties":{"a":null}}`, `{"a":1}`, `{"a":1}`, ""},
		{"null property, explained", `{"type":"object","properties":{"a":null,"b":{"type":"string"}},"required":["b"]}`, `{}`, "", "'b' is missing"},
		{"boolean schemas", `{"type":"object","properties":{"a":true}}`, `{"a":[1]}`, `{"a":[1]}`, ""},
		{"odd properties", `{"type":"object","properties":[1,2]}`, `{"a":1}`, `{"a":1}`, ""},
		{"endless reference", `{"type":"object","properties":{"a":{"$ref":"#/properties/a"}}}`, `{"a":{}}`, `{"a":{}}`, ""},
		{"endless whole", `{"type":"object","$ref":"#"}`, `{}`, `{}`, ""},
		{"endless in disguise", `{"type":"object","\u0024ref":"#"}`, `{}`, `{}`, ""},
		{"remote reference", `{"type":"object","properties":{"a":{"$ref":"http://127.0.0.1:1/x.json"}}}`, `{"a":1}`, `{"a":1}`, ""},
		{"several types", `{"type":"object","properties":{"a":{"type":["string","null"]}}}`, `{"a":null}`, `{"a":null}`, ""},
		{"sorted", `{"type":"object"}`, ` {"b": 1.50, "a": {"z":"<&>","y":[ ]}, "a2": 12345678901234567890} `, `{"a":{"y":[],"z":"<&>"},"a2":12345678901234567890,"b":1.50}`, ""},
		{"twice", `{"type":"object"}`, `{"a":1,"a":2}`, `{"a":2}`, ""},
		{"closed", `{"type":"object","additionalProperties":false}`, `{"x":1}`, "", "no parameter 'x'"},
	} {
		set, err := tool.NewSet(raw{"raw", c.schema})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		found, args, err := set.Resolve("raw", []byte(c.args))
		if err == nil {
			err = set.Validate(found, args)
		}
		switch {
		case c.wrong != "":
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%s: %v, want %s", c.name, err, c.wrong)
			}
		case err != nil:
			t.Errorf("%s: %v", c.name, err)
		case string(args) != c.want:
			t.Errorf("%s: %s, want %s", c.name, args, c.want)
		}
	}
	for _, schema := range []string{``, `[]`, `true`, `"x"`, `null`, `{`} {
		if _, err := tool.NewSet(raw{"raw", schema}); err == nil && schema != `true` && schema != `null` {
			t.Errorf("schema %q was taken", schema)
		}
	}
}

func FuzzForeignSchema(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"type":"integer","exclusiveMinimum":true}}}`, `{"a":"1"}`)
	f.Add(`{"properties":{"a":null,"b":{"enum":[1,"x",null]}},"required":["a","b"],"additionalProperties":false}`, `{"b":2}`)
	f.Add(`{"$ref":"#","anyOf":[{"$ref":"#"}]}`, `{}`)
	f.Add(`{"type":["object","null"],"patternProperties":{"^x(":{}},"items":[{}],"const":null}`, `{"x":[{}]}`)
	f.Add(`{"allOf":[null],"not":null,"if":null,"properties":{"a":{"items":null,"anyOf":[null]}}}`, `{"a":[1]}`)
	f.Fuzz(func(t *testing.T, schema, args string) {
		set, err := tool.NewSet(raw{"raw", schema})
		if err != nil {
			return
		}
		found, corrected, err := set.Resolve("raw", []byte(args))
		if err != nil {
			return
		}
		_ = set.Validate(found, corrected)
		if _, again, err := set.Resolve("raw", corrected); err != nil || string(again) != string(corrected) {
			t.Errorf("%s of %s becomes %s when corrected again (%v)", corrected, args, again, err)
		}
	})
}

func TestForward(t *testing.T) {
	t.Parallel()
	all := newSet(t, demo("demo", tool.Also("other")), raw{"hidden", `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`})
	set, err := all.ListOnly(func(s tool.Spec) bool { return s.Name != "hidden" }, use{raw{"use", `{"type":"object"}`}})
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, s := range set.Specs() {
		listed = append(listed, s.Name)
	}
	if got := strings.Join(listed, " "); got != "demo use" {
		t.Errorf("listed are %s", got)
	}
	if s := set.Unlisted(); len(s) != 1 || s[0].Name != "hidden" {
		t.Errorf("unlisted are %v", s)
	}
	for _, c := range []struct{ name, args, tool, want string }{
		{"use", `{"name":"hidden","args":{"n":"3"}}`, "hidden", `{"n":3}`},
		{"USE", `{"name":"Hidden","args":"{\"n\":3}"}`, "hidden", `{"n":3}`},
		{"use", `{"name":"other","args":{"path":"x"}}`, "demo", `{"path":"x"}`},
		{"hidden", `{"n":1}`, "hidden", `{"n":1}`},
	} {
		found, args, err := set.Resolve(c.name, []byte(c.args))
		if err != nil {
			t.Errorf("%s %s: %v", c.name, c.args, err)
			continue
		}
		if found.Spec().Name != c.tool || string(args) != c.want || set.Validate(found, args) != nil {
			t.Errorf("%s %s is %s %s", c.name, c.args, found.Spec().Name, args)
		}
	}
	if got := set.Label("use", []byte(`{"name":"demo","args":{"path":"x"}}`)); got != "demo x" {
		t.Errorf("label %q", got)
	}
	for _, c := range []struct{ args, want string }{
		{`{}`, "name a tool"},
		{`{"name":"use","args":{"name":"demo"}}`, "cannot call use"},
		{`{"name":"hiden"}`, "Did you mean hidden?"},
	} {
		var mistake tool.Mistake
		if _, _, err := set.Resolve("use", []byte(c.args)); !errors.As(err, &mistake) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.args, err, c.want)
		}
	}
	if found, args, err := set.Resolve("use", []byte(`{"name":"hidden"}`)); err != nil || set.Validate(found, args) == nil {
		t.Errorf("nothing is missing: %v", err)
	}
	less := set.Filter(func(s tool.Spec) bool { return s.Name != "hidden" })
	if _, _, err := less.Resolve("hidden", []byte(`{"n":1}`)); err == nil {
		t.Error("a filtered tool is still found by find_tools")
	}
	if _, err := set.ListOnly(func(tool.Spec) bool { return true }, raw{"demo", `{}`}); err == nil {
		t.Error("a forwarder took a tool's name")
	}
}
