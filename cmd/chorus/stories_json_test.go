package main

import (
	"encoding/json"
	"errors"
	"io"
	"maps"

	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"chorus/internal/polltest"
)

// fieldCheck is what a story says about one field of a JSON object: path=text, path~regexp, or path alone for a field
// that is there. A path goes through objects by its dots and through lists by taking any of their elements.
type fieldCheck struct {
	path []string
	want *regexp.Regexp // nil: the field is there
}

var fieldForm = regexp.MustCompile(`^([A-Za-z_][\w.-]*)(?:([=~])((?s).*))?$`)

func parseFields(args []string) ([]fieldCheck, error) {
	var out []fieldCheck
	for _, arg := range args {
		m := fieldForm.FindStringSubmatch(arg)
		if m == nil {
			return nil, errors.New("not path=text, path~regexp or path: " + arg)
		}
		c := fieldCheck{path: strings.Split(m[1], ".")}
		switch m[2] {
		case "=":
			c.want = regexp.MustCompile(`^` + regexp.QuoteMeta(m[3]) + `$`)
		case "~":
			re, err := regexp.Compile(m[3])
			if err != nil {
				return nil, err
			}
			c.want = re
		}
		out = append(out, c)
	}
	return out, nil
}

func (c fieldCheck) holds(v any, path []string) bool {
	switch v := v.(type) {
	case []any:
		if slices.ContainsFunc(v, func(inner any) bool { return c.holds(inner, path) }) {
			return true
		}
	case map[string]any:
		if len(path) > 0 {
			inner, ok := v[path[0]]
			return ok && (len(path) == 1 && c.want == nil || c.holds(inner, path[1:]))
		}
	}
	return len(path) == 0 && (c.want == nil || c.want.MatchString(textOf(v)))
}

// textOf is a value as a story writes it: a string without quotes, anything else as JSON.
func textOf(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// countObjects counts the objects in a stream of JSON values, at any depth, for which all checks hold.
func countObjects(r io.Reader, checks []fieldCheck) (int, error) {
	n := 0
	dec := json.NewDecoder(r)
	dec.UseNumber()
	for {
		var v any
		switch err := dec.Decode(&v); {
		case errors.Is(err, io.EOF):
			return n, nil
		case err != nil:
			return n, err
		}
		n += countIn(v, checks)
	}
}

func countIn(v any, checks []fieldCheck) int {
	n := 0
	switch v := v.(type) {
	case []any:
		for _, inner := range v {
			n += countIn(inner, checks)
		}
	case map[string]any:
		if !slices.ContainsFunc(checks, func(c fieldCheck) bool { return !c.holds(v, c.path) }) {
			n++
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			n += countIn(v[key], checks)
		}
	}
	return n
}

// objectQuery is what the commands json and until have in common.
type objectQuery struct {
	file   string
	count  int // -1: at least one
	checks []fieldCheck
}

const jsonUsage = "[!] json [-in=FILE] [-count=N] FIELD…"

func parseQuery(ts *testscript.TestScript, args []string, usage string) objectQuery {
	q := objectQuery{file: "stdout", count: -1}
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		name, value, _ := strings.Cut(args[0], "=")
		switch name {
		case "-in":
			q.file = value
		case "-count":
			n, err := strconv.Atoi(value)
			ts.Check(err)
			q.count = n
		default:
			ts.Fatalf("usage: %s", usage)
		}
		args = args[1:]
	}
	need(ts, len(args) > 0, usage)
	checks, err := parseFields(args)
	ts.Check(err)
	q.checks = checks
	return q
}

func (q objectQuery) answeredBy(n int) bool { return n == q.count || q.count < 0 && n > 0 }

// hasObject looks for an object in what was printed last, or in a file.
func hasObject(ts *testscript.TestScript, neg bool, args []string) {
	q := parseQuery(ts, args, jsonUsage)
	text := ts.ReadFile(q.file)
	if q.file == "stdout" {
		need(ts, strings.TrimSpace(text) != "", jsonUsage+", behind a command that prints something")
	}
	n, err := countObjects(strings.NewReader(text), q.checks)
	if err != nil {
		ts.Fatalf("%s is not JSON: %v\n%s", q.file, err, text)
	}
	if q.answeredBy(n) == neg {
		ts.Fatalf("%d objects in %s have %s", n, q.file, strings.Join(args, " "))
	}
}

const untilUsage = "until [-count=N] FIELD… -- PROGRAM ARGS… (or http SERVER METHOD PATH)"

// untilObject runs a program, or asks a server, again and again until the answer has the object.
func untilObject(ts *testscript.TestScript, neg bool, args []string) {
	split := slices.Index(args, "--")
	need(ts, !neg && split > 0 && split+1 < len(args), untilUsage)
	q := parseQuery(ts, args[:split], untilUsage)
	command := args[split+1:]
	var text []byte
	var err error
	if polltest.Soon(func() bool {
		if command[0] == "http" {
			_, text = request(ts, command[1:])
			err = nil
		} else {
			text, err = storyProgram(ts, command[0], command[1:]...).Output()
		}
		n, broken := countObjects(strings.NewReader(string(text)), q.checks)
		return err == nil && broken == nil && q.answeredBy(n)
	}) {
		return
	}
	exit := (*exec.ExitError)(nil)
	if errors.As(err, &exit) {
		text = append(text, exit.Stderr...)
	}
	ts.Fatalf("%s never had %s: %v\n%s", strings.Join(command, " "), strings.Join(args[:split], " "), err, text)
}

func TestCountObjects(t *testing.T) {
	t.Parallel()
	const text = `{"type":"a","n":1,"list":[{"name":"x","mark":"ok"},{"name":"y","mark":"bad"}]}
{"type":"b","n":1.50,"none":null,"deep":{"er":{"word":"two words"}},"tags":["red","blue"],"empty":[]}`
	for checks, want := range map[string]int{
		"type=a":             1,
		"type":               2,
		"n=1":                1,
		"n=1.50":             1,
		"name=x|mark=ok":     1,
		"name=x|mark=bad":    0,
		"type=a|list.name=y": 1,
		"none":               1,
		"none=null":          1,
		"deep.er.word~^two ": 1,
		"deep.er.word=two":   0,
		"tags=blue":          1,
		"empty=[]":           1,
		"tags~^b":            1,
		"type~^[ab]$":        2,
		"type=a|type=b":      0,
		"missing":            0,
		"word=two words":     1,
	} {
		fields, err := parseFields(strings.Split(checks, "|"))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := countObjects(strings.NewReader(text), fields); err != nil || got != want {
			t.Errorf("%s: %d, %v; want %d", checks, got, err, want)
		}
	}
	if _, err := parseFields([]string{"=x"}); err == nil {
		t.Error("a field without a name was taken")
	}
	if _, err := countObjects(strings.NewReader("no JSON"), nil); err == nil {
		t.Error("a text that is not JSON was taken")
	}
}
