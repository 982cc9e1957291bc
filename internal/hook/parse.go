package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"chorus/internal/digest"
	"chorus/internal/schedule"
	"chorus/internal/suggest"
)

// Limits of a definition.
const (
	maxSteps     = 20
	maxActions   = 20
	maxWhere     = 16
	maxText      = 100_000
	maxCommand   = 20_000
	maxTimeout   = 600
	leastSeconds = 60
	mostSeconds  = 366 * 24 * 3600
	// DefaultCooldown is the default rest after a run that an event triggered.
	DefaultCooldown = time.Hour
)

const triggerForms = `{"type":"periodic","interval_seconds":3600}, {"type":"periodic","schedule":"every weekday at 9"}, {"type":"event","event_type":"completed"} or {"type":"webhook"}`

// object reads JSON that must be an object with known fields.
func object(what string, data []byte, into any) error {
	trimmed := bytes.TrimSpace(data)
	if len(trimmed) == 0 || trimmed[0] != '{' {
		return fmt.Errorf("%s must be a JSON object, not %.40s", what, shown(trimmed))
	}
	d := json.NewDecoder(bytes.NewReader(trimmed))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		if name, unknown := strings.CutPrefix(err.Error(), "json: unknown field "); unknown {
			name = strings.Trim(name, `"`)
			return fmt.Errorf("%s: there is no field %.40q%s", what, name, suggest.Hint(name, fieldsOf(into)))
		}
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return fmt.Errorf("%s: %s must be %s, not %s", what, wrong.Field, kindOf(wrong.Type), wrong.Value)
		}
		return fmt.Errorf("%s cannot be read: %w", what, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("%s: there is extra text after the object", what)
	}
	return nil
}

func shown(data []byte) string {
	if len(data) == 0 {
		return "nothing"
	}
	return string(data)
}

// fieldsOf returns the JSON names of a struct's fields.
func fieldsOf(into any) (names []string) {
	t := reflect.TypeOf(into).Elem()
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Int:
		return "a whole number"
	case reflect.Bool:
		return "true or false"
	case reflect.Map:
		return "an object of texts"
	default:
		return "text"
	}
}

// EventName returns the stored form of an event type's name, in which dots and hyphens are underscores.
func EventName(name string) string {
	return strings.NewReplacer(".", "_", "-", "_").Replace(strings.ToLower(strings.TrimSpace(name)))
}

// ParseTrigger reads a trigger. types are the existing event types.
func ParseTrigger(data []byte, types []string, now time.Time) (Trigger, error) {
	var t Trigger
	var words string
	if json.Unmarshal(data, &words) == nil && words != "" {
		t = triggerOf(words, types)
	} else if err := object("trigger", data, &t); err != nil {
		return Trigger{}, fmt.Errorf("%w; use for example %s", err, triggerForms)
	}
	if len(t.Where) > maxWhere || len(t.Session) > 1024 || len(t.Agent) > 64 {
		return Trigger{}, fmt.Errorf("trigger: it is too long; there may be %d conditions in where", maxWhere)
	}
	for path := range t.Where {
		if name := "{{event." + path + "}}"; placeholder().FindString(name) != name {
			return Trigger{}, fmt.Errorf("trigger: %.40q in where is not a field of an event; use for example tool or result.ok", path)
		}
	}
	t.Spec = ""
	var err error
	switch t.Type {
	case Periodic:
		err = t.readTimes(now)
	case OnEvent:
		t.Event = EventName(t.Event)
		if !slices.Contains(types, t.Event) {
			err = fmt.Errorf("trigger: there is no event_type %.40q%s; there are %s", t.Event, suggest.Hint(t.Event, types), strings.Join(types, ", "))
		}
	case Webhook:
	default:
		err = fmt.Errorf("trigger: there is no type %.40q; it is for instance %s", t.Type, triggerForms)
	}
	if err == nil {
		err = t.checkFields()
	}
	if err != nil {
		return Trigger{}, err
	}
	return t, nil
}

// triggerOf interprets a few words written in place of an object: a webhook, an event, or times.
func triggerOf(words string, types []string) Trigger {
	switch words = strings.TrimSpace(words); {
	case strings.EqualFold(words, Webhook):
		return Trigger{Type: Webhook}
	case slices.Contains(types, EventName(words)):
		return Trigger{Type: OnEvent, Event: words}
	default:
		return Trigger{Type: Periodic, Schedule: words}
	}
}

// checkFields reports a field that the trigger's type does not have.
func (t Trigger) checkFields() error {
	for _, f := range []struct {
		name string
		set  bool
		of   string
	}{
		{"interval_seconds", t.Interval != 0, Periodic}, {"schedule", t.Schedule != "", Periodic}, {"zone", t.Zone != "", Periodic},
		{"event_type", t.Event != "", OnEvent}, {"session", t.Session != "", OnEvent}, {"agent", t.Agent != "", OnEvent},
	} {
		if f.set && t.Type != f.of {
			return fmt.Errorf("trigger: %s is for triggers of the type %s", f.name, f.of)
		}
	}
	if len(t.Where) > 0 && t.Type == Periodic {
		return errors.New("trigger: where is for triggers of the types event and webhook")
	}
	return nil
}

func (t *Trigger) readTimes(now time.Time) error {
	zone, err := schedule.Zone(t.Zone)
	if err != nil {
		return fmt.Errorf("trigger: %w", err)
	}
	if (t.Interval != 0) == (t.Schedule != "") {
		return errors.New("trigger: say either interval_seconds or schedule")
	}
	var spec schedule.Spec
	if t.Schedule != "" {
		if len(t.Schedule) > 200 {
			return errors.New("trigger: schedule is longer than 200 bytes")
		}
		spec, err = schedule.Parse(t.Schedule, zone, now)
	} else if t.Interval < leastSeconds || t.Interval > mostSeconds {
		return fmt.Errorf("trigger: interval_seconds must be from %d to %d, not %d", leastSeconds, mostSeconds, t.Interval)
	} else {
		spec, err = schedule.Every(time.Duration(t.Interval)*time.Second, now.In(zone).Truncate(time.Second))
	}
	if err != nil {
		return fmt.Errorf("trigger: %w", err)
	}
	t.Spec = spec.String()
	return nil
}

// Next returns when a periodic trigger is due next after an instant, or zero for never.
func (t Trigger) Next(after time.Time) time.Time {
	if t.Type != Periodic {
		return time.Time{}
	}
	zone, err := schedule.Zone(t.Zone)
	if err != nil {
		return time.Time{}
	}
	spec, err := schedule.Read(t.Spec, zone)
	if err != nil {
		return time.Time{}
	}
	return spec.Next(after)
}

// list reads a JSON list. null and no data give an empty list.
func list(what string, data []byte, most int) ([]json.RawMessage, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, nil
	}
	var items []json.RawMessage
	if err := json.Unmarshal(data, &items); err != nil {
		return nil, fmt.Errorf("%s must be a JSON list of objects, not %.40s", what, shown(bytes.TrimSpace(data)))
	}
	if len(items) > most {
		return nil, fmt.Errorf("%s has %d entries; the limit is %d", what, len(items), most)
	}
	return items, nil
}

// ParseSteps reads context steps. queries are the names that db_query knows.
func ParseSteps(data []byte, queries []string) ([]Step, error) {
	return parseList("context_steps", data, maxSteps, func(s Step) error { return s.check(queries) })
}

// parseList reads a list of objects and checks each.
func parseList[T any](name string, data []byte, most int, check func(T) error) ([]T, error) {
	items, err := list(name, data, most)
	if err != nil {
		return nil, err
	}
	var out []T
	for i, item := range items {
		var one T
		what := fmt.Sprintf("%s[%d]", name, i)
		if err := object(what, item, &one); err != nil {
			return nil, err
		}
		if err := check(one); err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		out = append(out, one)
	}
	return out, nil
}

// stepFields lists which fields a step of each type has, besides type. The first one is required.
var stepFields = map[string][]string{
	Shell:    {"command", "timeout", "skip_llm_if_exit_zero", "skip_llm_if_empty"},
	ReadFile: {"path", "max_lines", "skip_llm_if_empty"},
	HTTP:     {"url", "timeout", "skip_llm_if_status_ok", "skip_llm_if_empty"},
	Query:    {"query", "params", "skip_llm_if_empty"},
	GitDiff:  {"", "base_branch", "path", "workspace", "uncommitted", "skip_llm_if_empty"},
	Search:   {"query", "path", "skip_llm_if_empty"},
}

var stepTypes = []string{Shell, ReadFile, HTTP, Query, GitDiff, Search}

func (s Step) check(queries []string) error {
	fields, ok := stepFields[s.Type]
	if !ok {
		return fmt.Errorf("there is no step of the type %.40q%s; there are %s", s.Type, suggest.Hint(s.Type, stepTypes), strings.Join(stepTypes, ", "))
	}
	if err := only(s, s.Type, fields); err != nil {
		return err
	}
	if s.Timeout < 0 || s.Timeout > maxTimeout || s.MaxLines < 0 || s.MaxLines > 10_000 {
		return fmt.Errorf("timeout must be at most %d seconds, and max_lines at most 10000", maxTimeout)
	}
	switch s.Type {
	case Shell:
		return plainCommand(s.Command)
	case HTTP:
		return checkURL(s.URL)
	case Query:
		if !slices.Contains(queries, s.Query) {
			return fmt.Errorf("there is no query %.40q%s; there are %s", s.Query, suggest.Hint(s.Query, queries), strings.Join(queries, ", "))
		}
	case GitDiff:
		if strings.HasPrefix(s.BaseBranch, "-") || strings.ContainsAny(s.BaseBranch, " \t\n\x00") {
			return fmt.Errorf("%.40q is not a valid branch", s.BaseBranch)
		}
	}
	if len(placeholders(s.Path+s.BaseBranch+s.Workspace)) > 0 || s.Type == Search && len(placeholders(s.Query)) > 0 {
		return errors.New("placeholders may appear only in a url, in params, in the template and in texts to say")
	}
	return nil
}

// plainCommand refuses commands into which others could insert words.
func plainCommand(command string) error {
	switch {
	case len(command) > maxCommand:
		return fmt.Errorf("the command is longer than %d bytes; put it into a script", maxCommand)
	case len(placeholders(command)) > 0:
		return errors.New("a command takes no placeholders: whoever causes an event could run anything with them. Let the model see the value in the template instead")
	}
	return nil
}

func checkURL(text string) error {
	at := placeholder().FindStringIndex(text)
	u, err := url.Parse(placeholder().ReplaceAllString(text, "x"))
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return fmt.Errorf("%.80q is not a valid address; it must begin with https://", text)
	}
	if u.User != nil {
		return errors.New("a url must not contain a user or a password")
	}
	if at != nil {
		begin := strings.Index(text, "://") + 3
		if slash := strings.IndexByte(text[begin:], '/'); slash < 0 || at[0] < begin+slash {
			return errors.New("a placeholder cannot be part of the host; use it in the path or the query")
		}
	}
	return nil
}

// only reports fields that a type does not have, and a missing required first field.
func only(of any, kind string, fields []string) error {
	v := reflect.ValueOf(of)
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if name != "type" && !v.Field(i).IsZero() && !slices.Contains(fields, name) {
			return fmt.Errorf("%s has no %s", kind, name)
		}
		if name == fields[0] && v.Field(i).IsZero() {
			return fmt.Errorf("%s needs %s", kind, name)
		}
	}
	return nil
}

var actionFields = map[string][]string{
	Say:       {"text", "session"},
	Shell:     {"command", "timeout"},
	Operation: {"name", "args"},
}

var actionTypes = []string{Say, Shell, Operation}

// ParseActions reads actions. operations are the names that an action of the type operation knows.
func ParseActions(data []byte, operations []string) ([]Action, error) {
	return parseList("actions", data, maxActions, func(a Action) error { return a.check(operations) })
}

func (a Action) check(operations []string) error {
	fields, ok := actionFields[a.Type]
	if !ok {
		return fmt.Errorf("there is no action of the type %.40q%s; there are %s", a.Type, suggest.Hint(a.Type, actionTypes), strings.Join(actionTypes, ", "))
	}
	if err := only(a, a.Type, fields); err != nil {
		return err
	}
	if a.Timeout < 0 || a.Timeout > maxTimeout || len(a.Text) > maxText || len(a.Args) > maxText {
		return fmt.Errorf("timeout must be at most %d seconds, and texts at most %d bytes", maxTimeout, maxText)
	}
	switch a.Type {
	case Say:
		if a.Session == "" {
			return errors.New("say needs session")
		}
	case Shell:
		return plainCommand(a.Command)
	case Operation:
		if !slices.Contains(operations, a.Name) {
			return fmt.Errorf("there is no operation %.40q%s", a.Name, suggest.Hint(a.Name, operations))
		}
		var args map[string]json.RawMessage
		if len(a.Args) > 0 && json.Unmarshal(a.Args, &args) != nil {
			return errors.New("args must be a JSON object")
		}
	}
	return nil
}

// Check reports what is wrong with a definition whose parts were parsed.
func (d Definition) Check() error {
	switch {
	case len(d.Template) > maxText:
		return fmt.Errorf("prompt_template has %d bytes; the limit is %d", len(d.Template), maxText)
	case strings.TrimSpace(d.Template) == "" && len(d.Actions) == 0:
		return errors.New("prompt_template and actions are both empty: the hook would do nothing")
	case d.Cooldown < 0 || d.Cooldown > mostSeconds*time.Second:
		return errors.New("cooldown_seconds must be from 0 to a year")
	case d.Trigger.Type == Periodic && d.Trigger.Interval > 0 && d.Cooldown > time.Duration(d.Trigger.Interval)*time.Second:
		return fmt.Errorf("a cooldown of %s holds up an interval of %d seconds; leave cooldown_seconds out", d.Cooldown, d.Trigger.Interval)
	case d.Budget < 0:
		return errors.New("a budget is not negative")
	}
	if slices.Contains(placeholders(d.Template), "response") {
		return errors.New("prompt_template: {{response}} is the model's answer; use it in actions")
	}
	return nil
}

// Digest identifies what an approval of a hook covers: everything it runs and accesses, and where.
// The words for the model and its times may change without a new approval.
func (h Hook) Digest() string {
	data, _ := json.Marshal(struct { // text and numbers only
		Agent, Dir string
		Steps      []Step
		Actions    []Action
	}{h.Agent, h.Dir, h.Steps, h.Actions})
	return digest.Of(data)
}
