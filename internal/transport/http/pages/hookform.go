package pages

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/transport/http/display"
)

// hookForm is what somebody has typed about a hook, with a preview.
type hookForm struct {
	ID       string // of an existing hook; "": a new one
	Name     string
	Starts   string // times, event or webhook
	When     string
	Zone     string
	Event    string
	Where    string // FIELD=TEXT, one per line
	Commands string // one per line
	SkipOK   bool   // stop if the first command succeeds
	Steps    string // more steps, as JSON
	Prompt   string
	Say      string // the session in which the answer is posted
	Actions  string // more actions, as JSON
	Model    string
	Budget   string // in dollars
	Cooldown string // in seconds
	Agent    string
	Dir      string
	Key      string

	Wrong   string
	Field   string // the field that is wrong
	Preview *operations.HookPreview
	Hidden  map[string]string // the fields that Preview is about
}

// The ways to start a hook.
const (
	byTimes   = "times"
	byEvent   = "event"
	byWebhook = "webhook"
)

func readHookForm(r *http.Request) hookForm {
	get := func(name string) string {
		return strings.TrimSpace(strings.ReplaceAll(r.PostFormValue(name), "\r\n", "\n"))
	}
	return hookForm{Name: get("name"), Starts: get("starts"), When: get("when"), Zone: get("zone"), Event: get("event"), Where: get("where"), Commands: get("commands"), SkipOK: get("skipOk") != "",
		Steps: get("steps"), Prompt: get("prompt"), Say: get("say"), Actions: get("actions"), Model: get("model"), Budget: get("budget"), Cooldown: get("cooldown"), Agent: get("agent"), Dir: get("dir"), Key: get("key")}
}

// input converts the form.
func (f hookForm) input() (in operations.NewHook, err error) {
	in = operations.NewHook{Name: f.Name, Prompt: f.Prompt, Agent: f.Agent, Workspace: f.Dir, Key: f.Key}
	if f.Name == "" {
		return in, operation.InvalidField("name", "give the hook a name")
	}
	if in.Trigger, err = f.trigger(); err != nil {
		return in, err
	}
	var steps []any
	for line := range strings.SplitSeq(f.Commands, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			step := map[string]any{"type": "shell", "command": line}
			if f.SkipOK && len(steps) == 0 {
				step["skip_llm_if_exit_zero"] = true
			}
			steps = append(steps, step)
		}
	}
	if in.Steps, err = withMore(steps, f.Steps, "contextSteps", "steps"); err != nil {
		return in, err
	}
	var actions []any
	if f.Say != "" {
		actions = append(actions, map[string]any{"type": "say", "session": f.Say, "text": "{{response}}"})
	}
	if in.Actions, err = withMore(actions, f.Actions, "actions", "actions"); err != nil {
		return in, err
	}
	if in.LLM, err = f.llm(); err != nil {
		return in, err
	}
	if f.Cooldown != "" {
		seconds, err := strconv.Atoi(f.Cooldown)
		if err != nil || seconds < 0 {
			return in, operation.InvalidField("cooldownSeconds", "the pause must be a number of seconds, not %.20q", f.Cooldown)
		}
		in.Cooldown = &seconds
	}
	return in, nil
}

func (f hookForm) trigger() (operation.JSON, error) {
	trigger := map[string]any{}
	switch f.Starts {
	case byEvent:
		trigger["type"], trigger["event_type"] = "event", f.Event
	case byWebhook:
		trigger["type"] = "webhook"
	default:
		if f.When == "" {
			return operation.JSON{}, operation.InvalidField("trigger", "say when the hook runs, such as every weekday at 9")
		}
		trigger["type"], trigger["schedule"] = "periodic", f.When
		if f.Zone != "" {
			trigger["zone"] = f.Zone
		}
	}
	where := map[string]string{}
	for line := range strings.SplitSeq(f.Where, "\n") {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			return operation.JSON{}, operation.InvalidField("trigger", "%.40q is not a condition; write FIELD=TEXT, such as result.ok=false", line)
		}
		where[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	if len(where) > 0 && f.Starts != byTimes && f.Starts != "" {
		trigger["where"] = where
	}
	return asJSON(trigger), nil
}

func (f hookForm) llm() (operation.JSON, error) {
	if f.Model == "" && f.Budget == "" {
		return operation.JSON{}, nil
	}
	llm := map[string]any{}
	if f.Model != "" {
		llm["model"] = f.Model
	}
	if f.Budget != "" {
		dollars, err := strconv.ParseFloat(strings.TrimPrefix(f.Budget, "$"), 64)
		if err != nil {
			return operation.JSON{}, operation.InvalidField("llmConfig", "the cost limit must be a number of dollars, not %.20q", f.Budget)
		}
		llm["budget_usd"] = dollars
	}
	return asJSON(llm), nil
}

// withMore adds entries that were typed as JSON.
func withMore(list []any, text, field, what string) (operation.JSON, error) {
	if text != "" {
		var more []any
		if err := json.Unmarshal([]byte(text), &more); err != nil {
			return operation.JSON{}, operation.InvalidField(field, "the %s must be a JSON list: %s", what, err)
		}
		list = append(list, more...)
	}
	if len(list) == 0 {
		return operation.JSON{}, nil
	}
	return asJSON(list), nil
}

func asJSON(value any) operation.JSON {
	data, _ := json.Marshal(value) // it consists of text and numbers
	return operation.JSON{Raw: data}
}

// formOf returns the form of an existing hook.
func formOf(h operations.Hook) hookForm {
	f := hookForm{ID: h.ID, Name: h.Name, Prompt: h.Prompt, Model: h.Model, Agent: h.Agent, Dir: h.Workspace, Cooldown: strconv.Itoa(h.Cooldown)}
	if h.BudgetUSD > 0 {
		f.Budget = strconv.FormatFloat(h.BudgetUSD, 'f', -1, 64)
	}
	var trigger struct {
		Type, Schedule, Zone string
		Interval             int               `json:"interval_seconds"`
		Event                string            `json:"event_type"`
		Where                map[string]string `json:"where"`
	}
	_ = json.Unmarshal(h.Trigger, &trigger) // we wrote it ourselves
	f.Starts, f.When, f.Zone, f.Event = byTimes, trigger.Schedule, trigger.Zone, trigger.Event
	switch trigger.Type {
	case "event":
		f.Starts = byEvent
	case "webhook":
		f.Starts = byWebhook
	default:
		if trigger.Interval > 0 {
			f.When = fmt.Sprintf("every %d seconds", trigger.Interval)
		}
	}
	for name, value := range trigger.Where {
		f.Where += name + "=" + value + "\n"
	}
	var steps []map[string]any
	_ = json.Unmarshal(h.Steps, &steps)
	for i, s := range steps {
		command, _ := s["command"].(string)
		skip := i == 0 && s["skip_llm_if_exit_zero"] == true
		if s["type"] != "shell" || strings.Contains(command, "\n") || len(s) > 2 && !(skip && len(s) == 3) {
			f.Commands, f.SkipOK, f.Steps = "", false, display.JSON(string(h.Steps))
			break
		}
		f.Commands, f.SkipOK = f.Commands+command+"\n", f.SkipOK || skip
	}
	if len(h.Actions) > 0 {
		f.Actions = display.JSON(string(h.Actions))
	}
	return f
}

// hidden are the fields as shown, so that exactly what was seen is saved.
func (f hookForm) hidden() map[string]string {
	out := map[string]string{"name": f.Name, "starts": f.Starts, "when": f.When, "zone": f.Zone, "event": f.Event, "where": f.Where, "commands": f.Commands, "steps": f.Steps, "prompt": f.Prompt, "say": f.Say,
		"actions": f.Actions, "model": f.Model, "budget": f.Budget, "cooldown": f.Cooldown, "agent": f.Agent, "dir": f.Dir}
	if f.SkipOK {
		out["skipOk"] = "1"
	}
	return out
}

// newHook shows the form of a new hook.
func (p *Pages) newHook(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	return p.showHookForm(w, r, by, hookForm{Starts: byTimes})
}

// editHook shows the form of an existing hook.
func (p *Pages) editHook(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	h, err := operations.GetHook.Call(r.Context(), p.Executor, by, operations.HookRef{ID: r.PathValue("id")})
	if err != nil {
		return err
	}
	return p.showHookForm(w, r, by, formOf(h))
}

func (p *Pages) showHookForm(w http.ResponseWriter, r *http.Request, by operation.Caller, f hookForm) error {
	title := "New hook"
	if f.ID != "" {
		title = "Change " + f.Name
	}
	return p.render(w, http.StatusOK, "hookform.html", map[string]any{"Layout": p.layout(r, by, title), "Form": f, "May": by.May(operation.Chat)})
}

// addHook previews a new hook, and saves it once somebody has seen the preview.
func (p *Pages) addHook(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	return p.keepHook(w, r, by, readHookForm(r), func(in operations.NewHook) (operations.Hook, error) {
		return operations.CreateHook.Call(r.Context(), p.Executor, by, in)
	})
}

// saveHook previews a changed hook, and saves it once somebody has seen the preview.
func (p *Pages) saveHook(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	f := readHookForm(r)
	f.ID = r.PathValue("id")
	old, err := operations.GetHook.Call(r.Context(), p.Executor, by, operations.HookRef{ID: f.ID})
	if err != nil {
		return err
	}
	f.Agent, f.Dir = old.Agent, old.Workspace // these do not change
	return p.keepHook(w, r, by, f, func(in operations.NewHook) (operations.Hook, error) {
		none, null := operation.JSON{Raw: json.RawMessage(`[]`)}, operation.JSON{Raw: json.RawMessage(`null`)}
		changes := operations.HookChanges{ID: f.ID, Name: in.Name, Trigger: in.Trigger, Prompt: &in.Prompt, Steps: in.Steps, Actions: in.Actions, LLM: in.LLM, Cooldown: in.Cooldown, Approve: in.Approve}
		for _, part := range []struct{ is, otherwise *operation.JSON }{{&changes.Steps, &none}, {&changes.Actions, &none}, {&changes.LLM, &null}} {
			if part.is.IsZero() {
				*part.is = *part.otherwise
			}
		}
		return operations.EditHook.Call(r.Context(), p.Executor, by, changes)
	})
}

// keepHook shows a form with its preview or, once that was seen, saves it. Errors are shown next to the form.
func (p *Pages) keepHook(w http.ResponseWriter, r *http.Request, by operation.Caller, f hookForm, keep func(operations.NewHook) (operations.Hook, error)) error {
	in, err := f.input()
	if err == nil && r.PostFormValue("do") == "keep" {
		in.Approve = r.PostFormValue("approve") != ""
		var kept operations.Hook
		if kept, err = keep(in); err == nil {
			if kept.Secret != "" { // it is shown once
				return p.showHook(w, r, by, kept.ID, map[string]any{"Secret": kept.Secret})
			}
			return finishForm(w, r, "/hooks/"+kept.ID, "kept")
		}
	} else if err == nil {
		var preview operations.HookPreview
		if preview, err = operations.PreviewHook.Call(r.Context(), p.Executor, by, in); err == nil {
			f.Preview, f.Hidden = &preview, f.hidden()
		}
	}
	if wrong, ok := errors.AsType[*operation.Error](err); ok && slices.Contains([]operation.Kind{operation.Invalid, operation.Forbidden, operation.Conflict}, wrong.Kind) {
		f.Wrong, f.Field = cmp.Or(wrong.Message, wrong.Error()), wrong.Field
		err = nil
	}
	if err != nil {
		return err
	}
	return p.showHookForm(w, r, by, f)
}

// hookRun shows one run with its steps, prompt, answer and actions.
func (p *Pages) hookRun(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	run, err := operations.GetHookRun.Call(r.Context(), p.Executor, by, operations.HookRunRef{ID: r.PathValue("id")})
	if err != nil {
		return err
	}
	return p.render(w, http.StatusOK, "hookrun.html", map[string]any{"Layout": p.layout(r, by, "Run of "+run.HookID), "R": run, "Steps": resultsOf(run.Steps), "Actions": resultsOf(run.Actions)})
}

// hookResult is the result of a step or an action, for people.
type hookResult struct {
	Type   string
	Facts  string // its code or status
	Text   string
	Wrong  string
	Number int
}

// resultsOf parses the results of steps or actions.
func resultsOf(data json.RawMessage) (out []hookResult) {
	var list []struct {
		Type    string          `json:"type"`
		Stdout  string          `json:"stdout"`
		Stderr  string          `json:"stderr"`
		Content string          `json:"content"`
		Body    string          `json:"body"`
		Diff    string          `json:"diff"`
		Rows    json.RawMessage `json:"rows"`
		Exit    *int            `json:"exit_code"`
		Status  *int            `json:"status_code"`
		Error   string          `json:"error"`
	}
	_ = json.Unmarshal(data, &list) // we wrote it ourselves
	for i, r := range list {
		one := hookResult{Type: r.Type, Number: i, Wrong: r.Error, Text: cmp.Or(r.Stdout, r.Content, r.Body, r.Diff, r.Stderr, display.JSON(string(r.Rows)))}
		switch {
		case r.Exit != nil:
			one.Facts = fmt.Sprintf("exit code %d", *r.Exit)
		case r.Status != nil:
			one.Facts = fmt.Sprintf("HTTP %d", *r.Status)
		}
		out = append(out, one)
	}
	return out
}
