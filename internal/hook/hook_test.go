package hook

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"chorus/internal/chat"
)

var (
	types   = []string{"completed", "error", "tool_result", "user_message"}
	queries = []string{"recent_events", "hook_runs"}
	noon    = time.Date(2026, 11, 17, 12, 0, 0, 0, time.UTC)
	ada     = chat.Principal{Kind: chat.LocalUser, ID: "ada", Roles: []string{"owner"}}
)

func number(n int) *int { return &n }

// A trigger that was a text, a list or a number was accepted, and then every tick and every event failed, so that the
// hooks after it never ran.
func TestTriggersThatCannotBeRunAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`"periodic"`:             "\"periodic\" is not understood",
		`[]`:                     "must be a JSON object",
		`42`:                     "must be a JSON object",
		`null`:                   "must be a JSON object",
		``:                       "not nothing",
		`{`:                      "cannot be read",
		`{"type":"periodic"} {}`: "extra text after",
		`{}`:                     "there is no type",
		`{"type":"cron"}`:        "there is no type",
		`{"type":"periodic"}`:    "either interval_seconds or schedule",
		`{"type":"periodic","interval_seconds":1}`:                     "from 60",
		`{"type":"periodic","interval_seconds":-5}`:                    "from 60",
		`{"type":"periodic","interval_seconds":"60"}`:                  "interval_seconds must be a whole number, not string",
		`{"type":"periodic","interval_seconds":1e300}`:                 "must be a whole number",
		`{"type":"periodic","interval_seconds":60,"schedule":"daily"}`: "either",
		`{"type":"periodic","schedule":"every purple"}`:                "not understood",
		`{"type":"periodic","schedule":"0 0 30 2 *"}`:                  "never comes",
		`{"type":"periodic","schedule":"daily","zone":"Mars/Olympus"}`: "there is no time zone",
		`{"type":"event"}`: "there is no event_type",
		`{"type":"event","event_type":"task.completed"}`:                  "there are completed",
		`{"type":"event","event_type":"completed","interval_seconds":60}`: "is for triggers of the type periodic",
		`{"type":"event","event_typ":"completed"}`:                        `did you mean "event_type"`,
		`{"type":"event","event_type":"completed","where":{"a b":"c"}}`:   "is not a field of an event",
		`{"type":"periodic","interval_seconds":60,"where":{"a":"c"}}`:     "where is for",
		`{"type":"webhook","event_type":"completed"}`:                     "is for triggers of the type event",
	} {
		if _, err := ParseTrigger([]byte(text), types, noon); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestTriggers(t *testing.T) {
	t.Parallel()
	for text, next := range map[string]time.Time{
		`{"type":"periodic","interval_seconds":60}`:                        noon.Add(time.Minute),
		`{"type":"periodic","schedule":"every day at 9","zone":"UTC"}`:     noon.Add(21 * time.Hour),
		`{"type":"event","event_type":"tool.result","where":{"tool":"*"}}`: {},
		`{"type":"webhook","where":{"action":"opened"}}`:                   {},
	} {
		got, err := ParseTrigger([]byte(text), types, noon)
		if err != nil || !got.Next(noon).Equal(next) {
			t.Errorf("%s: next %s, %v", text, got.Next(noon), err)
		}
		kept, _ := json.Marshal(got)
		var again Trigger
		if err := json.Unmarshal(kept, &again); err != nil || !again.Next(noon).Equal(next) {
			t.Errorf("%s is kept as %s: %v", text, kept, err)
		}
	}
	// The documents write task_completed, what came later emitted task.completed: both mean the same.
	a, _ := ParseTrigger([]byte(`{"type":"event","event_type":"tool.result"}`), types, noon)
	b, _ := ParseTrigger([]byte(`{"type":"event","event_type":"Tool_Result"}`), types, noon)
	if a.Event != b.Event || a.Event != "tool_result" {
		t.Errorf("%q and %q", a.Event, b.Event)
	}
}

func TestStepsAreChecked(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`"x"`:                "must be a JSON list",
		`[1]`:                "context_steps[0] must be a JSON object",
		`[{"type":"sing"}]`:  "there is no step of the type",
		`[{"type":"shell"}]`: "shell needs command",
		`[{"type":"shell","command":"ls","url":"https://a.example"}]`:             "shell has no url",
		`[{"type":"shell","command":"echo {{event.text}}"}]`:                      "takes no placeholders",
		`[{"type":"shell","command":"ls","timeout":601}]`:                         "at most 600",
		`[{"type":"read_file","path":"a","skip_llm_if_exit_zero":true}]`:          "read_file has no skip_llm_if_exit_zero",
		`[{"type":"read_file","path":"{{event.path}}"}]`:                          "placeholders may appear only",
		`[{"type":"http","url":"file:///etc/passwd"}]`:                            "is not a valid address",
		`[{"type":"http","url":"https://{{event.host}}/x"}]`:                      "cannot be part of the host",
		`[{"type":"http","url":"https://a.example{{event.host}}/x"}]`:             "cannot be part of the host",
		`[{"type":"http","url":"https://me:secret@a.example/"}]`:                  "must not contain a user",
		`[{"type":"db_query","query":"DROP TABLE hooks"}]`:                        "there is no query",
		`[{"type":"git_diff","base_branch":"--output=/etc/passwd"}]`:              "is not a valid branch",
		`[{"type":"search","query":"{{event.text}}"}]`:                            "placeholders may appear only",
		`[` + strings.Repeat(`{"type":"git_diff"},`, 20) + `{"type":"git_diff"}]`: "has 21 entries",
	} {
		if _, err := ParseSteps([]byte(text), queries); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	for _, text := range []string{``, `null`, `[]`, `[{"type":"shell","command":"make test","timeout":60,"skip_llm_if_exit_zero":true},
		{"type":"read_file","path":"README.md","max_lines":500},{"type":"http","url":"https://a.example/{{event.id}}?q={{event.q}}","skip_llm_if_status_ok":true},
		{"type":"db_query","query":"hook_runs","params":{"limit":"{{event.n}}"}},{"type":"git_diff","base_branch":"main","workspace":"."},{"type":"search","query":"TODO"}]`} {
		if _, err := ParseSteps([]byte(text), queries); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestActionsAreChecked(t *testing.T) {
	t.Parallel()
	operations := []string{"session_say", "schedule_add"}
	for text, want := range map[string]string{
		`{}`:                             "must be a JSON list",
		`[{"type":"say","text":"x"}]`:    "say needs session",
		`[{"type":"say","session":"x"}]`: "say needs text",
		`[{"type":"shell","command":"rm {{response}}"}]`:          "takes no placeholders",
		`[{"type":"operation","name":"schedule_ad"}]`:             "did you mean",
		`[{"type":"operation","name":"schedule_add","args":[1]}]`: "args must be a JSON object",
		`[{"type":"post","text":"x"}]`:                            "there is no action",
	} {
		if _, err := ParseActions([]byte(text), operations); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestDefinitionsAreChecked(t *testing.T) {
	t.Parallel()
	periodic := Trigger{Type: Periodic, Interval: 60}
	for want, d := range map[string]Definition{
		"would do nothing": {Trigger: periodic},
		// A hook every minute with the cooldown of an hour that was the default ran once an hour.
		"holds up an interval of 60 seconds": {Trigger: periodic, Template: "x", Cooldown: time.Hour},
		"use it in actions":                  {Trigger: periodic, Template: "{{response}}"},
		"is not negative":                    {Trigger: periodic, Template: "x", Budget: -1},
		"to a year":                          {Trigger: periodic, Template: "x", Cooldown: -1},
		"the limit is":                       {Trigger: periodic, Template: strings.Repeat("x", maxText+1)},
	} {
		if err := d.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Placeholders as AgentQueue has them.
func TestTemplates(t *testing.T) {
	t.Parallel()
	v := Values{Hook: "nightly", Response: "all good", Event: []byte(`{"text":"{{step_0}}","result":{"ok":false,"n":3},"none":null}`),
		Steps: []Result{{Type: Shell, Stdout: "out {{event.text}}", Exit: number(0)}, {Type: HTTP, Body: "page", Status: number(200)}, {Type: Query, Count: number(0)}, {Type: Shell, Error: "no"}}}
	for template, want := range map[string]string{
		"{{step_0}}":                 "out {{event.text}}", // what is filled in is not read again
		"{{step_0.exit_code}}":       "0",
		"{{step_5}}":                 "",
		"{{step_5.stdout}}":          "",
		"{{foo}}":                    "{{foo}}",
		"{{step_x}}":                 "{{step_x}}",
		"{{ step_1 }}":               "page",
		"{{step_1.status_code}}":     "200",
		"{{step_2}}":                 `{"count":0}`,
		"{{step_3}}":                 `{"error":"no"}`,
		"{{event.text}}":             "{{step_0}}",
		"{{event.result.ok}}":        "false",
		"{{event.result.x.y}}":       "",
		"{{event.none}}":             "",
		"{{event.result}}":           `{"ok":false,"n":3}`,
		"{{response}} {{hook.name}}": "all good nightly",
		"{{hook.secret}}":            "{{hook.secret}}",
		"{{{{step_1}}}}":             "{{page}}",
		"}}{{":                       "}}{{",
	} {
		if got := v.Render(template); got != want {
			t.Errorf("%s: %q, want %q", template, got, want)
		}
	}
	if got := v.RenderURL("https://a.example/{{event.text}}?q={{step_1}}&ok={{event.result.ok}}"); got != "https://a.example/%7B%7Bstep_0%7D%7D?q=page&ok=false" {
		t.Error(got)
	}
	v.Frame = func(source, text string) string { return "<" + source + ":" + text + ">" }
	if got := v.Render("{{step_1}} {{step_0.exit_code}} {{event.result.n}} {{hook.name}}"); got != "<step 1 (http):page> 0 3 nightly" {
		t.Error(got)
	}
}

func TestRenderedTextIsBounded(t *testing.T) {
	t.Parallel()
	v := Values{Steps: []Result{{Stdout: strings.Repeat("ä", maxOutput)}}}
	got := v.Render(strings.Repeat("{{step_0}}", 10_000))
	if len(got) > maxRendered+100 || !strings.HasSuffix(got, "bytes]") {
		t.Errorf("%d bytes, ends with %q", len(got), got[len(got)-40:])
	}
}

func TestSkipConditions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		step   Step
		result Result
		want   string
	}{
		{Step{SkipIfExitZero: true}, Result{Exit: number(0)}, "step_0: exit code 0 (skip_llm_if_exit_zero)"},
		{Step{SkipIfExitZero: true}, Result{Exit: number(1)}, ""},
		{Step{SkipIfExitZero: true}, Result{Error: "it could not be started"}, ""},
		{Step{SkipIfEmpty: true}, Result{Stdout: " \n"}, "step_0: output empty (skip_llm_if_empty)"},
		{Step{SkipIfEmpty: true}, Result{Stdout: "x"}, ""},
		// Pages, differences and rows counted as empty, whatever they were.
		{Step{SkipIfEmpty: true}, Result{Body: "page", Status: number(200)}, ""},
		{Step{SkipIfEmpty: true}, Result{Diff: "+x"}, ""},
		{Step{SkipIfEmpty: true}, Result{Count: number(2)}, ""},
		{Step{SkipIfEmpty: true}, Result{Count: number(0)}, "step_0: output empty (skip_llm_if_empty)"},
		{Step{SkipIfEmpty: true}, Result{Error: "no such file"}, ""},
		{Step{SkipIfStatusOK: true}, Result{Status: number(204)}, "step_0: HTTP 204 (skip_llm_if_status_ok)"},
		{Step{SkipIfStatusOK: true}, Result{Status: number(500)}, ""},
		{Step{SkipIfStatusOK: true}, Result{Status: number(0), Error: "refused"}, ""},
		{Step{}, Result{}, ""},
	} {
		if got := Skip([]Step{c.step}, []Result{c.result}); got != c.want {
			t.Errorf("%+v %+v: %q", c.step, c.result, got)
		}
	}
}

func TestAdmission(t *testing.T) {
	t.Parallel()
	h := Hook{Name: "x", Enabled: true, Definition: Definition{Cooldown: time.Hour}}
	off := h
	off.Enabled = false
	for _, c := range []struct {
		hook   Hook
		s      Standing
		manual bool
		want   Verdict
	}{
		{h, Standing{}, false, Begin},
		{h, Standing{LastAt: noon.Add(-10 * time.Second)}, false, Pass},
		{h, Standing{LastAt: noon.Add(-3601 * time.Second)}, false, Begin},
		{h, Standing{LastAt: noon.Add(-10 * time.Second)}, true, Begin}, // by hand there is no cooldown
		{h, Standing{Unfinished: 1}, true, Pass},                        // already running
		{off, Standing{}, true, Pass},                                   // a hook that is off could be fired
		{h, Standing{Unfinished: MaxQueued}, false, Pass},
		{h, Standing{LastMinute: PerMinute}, false, Pass},
		{h, Standing{LastMinute: PerMinute}, true, Pass},
	} {
		got, why := c.hook.Admit(noon, c.s, c.manual)
		if got != c.want || (got == Pass) != (why != "") {
			t.Errorf("%+v by hand %t: %v %q", c.s, c.manual, got, why)
		}
	}
}

func TestMatching(t *testing.T) {
	t.Parallel()
	e := Event{Type: "tool_result", Thread: "web:local/ada:01x@helper", Data: []byte(`{"tool":"bash","result":{"ok":false,"stderr":"make: *** error"}}`)}
	for _, c := range []struct {
		trigger Trigger
		want    bool
	}{
		{Trigger{Type: OnEvent, Event: "tool_result"}, true},
		{Trigger{Type: OnEvent, Event: "completed"}, false},
		{Trigger{Type: Periodic, Event: "tool_result"}, false},
		{Trigger{Type: OnEvent, Event: "tool_result", Agent: "helper", Session: "01x"}, true},
		{Trigger{Type: OnEvent, Event: "tool_result", Agent: "other"}, false},
		{Trigger{Type: OnEvent, Event: "tool_result", Session: "01y"}, false},
		{Trigger{Type: OnEvent, Event: "tool_result", Where: map[string]string{"result.ok": "false", "tool": "b*h", "result.stderr": "*err*"}}, true},
		{Trigger{Type: OnEvent, Event: "tool_result", Where: map[string]string{"result.ok": "true"}}, false},
		{Trigger{Type: OnEvent, Event: "tool_result", Where: map[string]string{"missing": "*"}}, true},
		{Trigger{Type: OnEvent, Event: "tool_result", Where: map[string]string{"missing": "?"}}, false},
	} {
		if got := c.trigger.Matches(e); got != c.want {
			t.Errorf("%+v: %t", c.trigger, got)
		}
	}
}

func TestARunActsForItsOwner(t *testing.T) {
	t.Parallel()
	bob := chat.Principal{Kind: "discord", ID: "2"}
	h := Hook{ID: "h1", Name: "first", Owner: ada}
	by := func(kind chat.PrincipalKind, id string, behind chat.Principal) chat.Principal {
		return chat.Principal{Kind: kind, ID: id, Roles: []string{"owner"}, For: &behind}
	}
	for name, c := range map[string]struct {
		cause chat.Principal
		want  string // the row; "": it is stopped
	}{
		"a person":        {bob, "hook:h1 local:ada"},
		"nobody":          {chat.Principal{}, "hook:h1 local:ada"},
		"a schedule":      {by(chat.ScheduleRule, "s", bob), "hook:h1 schedule:s local:ada"},
		"another hook":    {by(chat.HookRule, "h2", bob), "hook:h1 hook:h2 local:ada"},
		"itself":          {by(chat.HookRule, "h1", ada), ""},
		"itself, far off": {by(chat.HookRule, "h2", by(chat.HookRule, "h1", ada)), ""},
		"two others":      {by(chat.HookRule, "h2", by(chat.HookRule, "h3", bob)), "hook:h1 hook:h2 hook:h3 local:ada"},
		"three others":    {by(chat.HookRule, "h2", by(chat.ScheduleRule, "s", by(chat.HookRule, "h3", bob))), ""},
	} {
		got, err := ActingFor(h, c.cause)
		var stopped *StoppedError
		if errors.As(err, &stopped) != (c.want == "") {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var row []string
		for at := &got; at != nil && c.want != ""; at = at.For {
			row = append(row, at.String())
			if at.Kind != chat.LocalUser && len(at.Roles) > 0 {
				t.Errorf("%s: %s has roles", name, at)
			}
		}
		if strings.Join(row, " ") != c.want || c.want != "" && got.Person().String() != "local:ada" {
			t.Errorf("%s: %s", name, row)
		}
	}
}

func TestTheDigestHoldsWhatRuns(t *testing.T) {
	t.Parallel()
	h := Hook{Definition: Definition{Steps: []Step{{Type: Shell, Command: "make"}}, Template: "x"}}
	before := h.Digest()
	h.Template, h.Cooldown, h.Name = "y", time.Hour, "other"
	if h.Digest() != before {
		t.Error("words for the model need a new yes")
	}
	for name, change := range map[string]func(*Hook){
		"command": func(h *Hook) { h.Steps = []Step{{Type: Shell, Command: "make all"}} },
		"folder":  func(h *Hook) { h.Dir = "/srv" },
		"action":  func(h *Hook) { h.Actions = []Action{{Type: Shell, Command: "make"}} },
		"agent":   func(h *Hook) { h.Agent = "other" },
	} {
		other := h
		if change(&other); other.Digest() == before {
			t.Errorf("another %s needs no new yes", name)
		}
	}
}
