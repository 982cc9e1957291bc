// Package hookflags reads a hook from flags or from a file, so that people need not write JSON in a shell.
package hookflags

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/transport/cli"
	"chorus/internal/usage"
)

// flags are what people type instead of JSON.
type flags struct {
	when, on, zone  string
	webhook, skipOK bool
	where, run, say []string
	file            string
}

// Prepare adds the flags to a command and returns the function that applies them.
func Prepare(cmd *cobra.Command) func(context.Context, cli.Connection, *operations.NewHook, []string) error {
	var f flags
	set := cmd.Flags()
	set.StringVar(&f.when, "when", "", "run at set times, such as 'every weekday at 9' (try it with chorus schedule next)")
	set.StringVar(&f.zone, "zone", "", "time zone of --when, such as Europe/Berlin")
	set.StringVar(&f.on, "on", "", "run when an event happens, such as completed, error or tool_result")
	set.BoolVar(&f.webhook, "webhook", false, "run when a webhook arrives")
	set.StringArrayVar(&f.where, "where", nil, "run only if a field of the event has this value, such as result.ok=false; * matches any text")
	set.StringArrayVar(&f.run, "run", nil, "a command whose output is context: {{step_0}}, {{step_1}} …")
	set.BoolVar(&f.skipOK, "skip-ok", false, "do not ask the model if the first command of --run succeeds")
	set.StringArrayVar(&f.say, "say", nil, "post the answer in this session")
	set.StringVar(&f.file, "file", "", "read trigger, context_steps, prompt_template, actions and llm_config from a JSON file")
	return func(_ context.Context, _ cli.Connection, in *operations.NewHook, _ []string) (err error) {
		if in.Workspace != "" {
			if in.Workspace, err = filepath.Abs(in.Workspace); err != nil {
				return err
			}
		}
		return f.fill(in)
	}
}

// fill applies the flags to the operation's input.
func (f flags) fill(in *operations.NewHook) error {
	if f.file != "" {
		if err := readFile(f.file, in); err != nil {
			return err
		}
	}
	trigger := map[string]any{}
	switch {
	case f.when != "" && f.on == "" && !f.webhook:
		trigger["type"], trigger["schedule"] = "periodic", f.when
		if f.zone != "" {
			trigger["zone"] = f.zone
		}
	case f.on != "" && f.when == "" && !f.webhook:
		trigger["type"], trigger["event_type"] = "event", f.on
	case f.webhook && f.when == "" && f.on == "":
		trigger["type"] = "webhook"
	case f.when != "" || f.on != "" || f.webhook:
		return usage.Wrap(errors.New("use only one of --when, --on and --webhook"))
	}
	if len(f.where) > 0 {
		where := map[string]string{}
		for _, w := range f.where {
			name, value, ok := strings.Cut(w, "=")
			if !ok {
				return usage.Wrap(fmt.Errorf("--where %q: write FIELD=TEXT, such as result.ok=false", w))
			}
			where[name] = value
		}
		trigger["where"] = where
	}
	if trigger["type"] != nil {
		in.Trigger = asJSON(trigger)
	}
	if in.Trigger.IsZero() {
		return usage.Wrap(errors.New("choose what starts it: --when 'every weekday at 9', --on completed or --webhook"))
	}
	if len(f.run) > 0 {
		steps := make([]map[string]any, len(f.run))
		for i, command := range f.run {
			steps[i] = map[string]any{"type": "shell", "command": command}
		}
		if f.skipOK {
			steps[0]["skip_llm_if_exit_zero"] = true
		}
		in.Steps = asJSON(steps)
	}
	if len(f.say) > 0 {
		actions := make([]map[string]any, len(f.say))
		for i, session := range f.say {
			actions[i] = map[string]any{"type": "say", "session": session, "text": "{{response}}"}
		}
		in.Actions = asJSON(actions)
	}
	return nil
}

func asJSON(value any) operation.JSON {
	data, _ := json.Marshal(value) // text only
	return operation.JSON{Raw: data}
}

// readFile reads the definition of a hook. What was typed takes precedence.
func readFile(path string, in *operations.NewHook) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var file struct {
		Trigger  operation.JSON `json:"trigger"`
		Steps    operation.JSON `json:"context_steps"`
		Template string         `json:"prompt_template"`
		Actions  operation.JSON `json:"actions"`
		LLM      operation.JSON `json:"llm_config"`
		Cooldown *int           `json:"cooldown_seconds"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return usage.Wrap(fmt.Errorf("%s is not a JSON object with the fields of a hook: %w", path, err))
	}
	for _, f := range []struct {
		into *operation.JSON
		from operation.JSON
	}{{&in.Trigger, file.Trigger}, {&in.Steps, file.Steps}, {&in.Actions, file.Actions}, {&in.LLM, file.LLM}} {
		if f.into.IsZero() {
			*f.into = f.from
		}
	}
	in.Prompt = cmp.Or(in.Prompt, file.Template)
	in.Cooldown = cmp.Or(in.Cooldown, file.Cooldown)
	return nil
}
