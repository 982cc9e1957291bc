package background

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// CompilePrompt tells a model how to read instructions. Read parses its answer.
//
//go:embed compile.md
var CompilePrompt string

// CompileTokens is the maximum length of such an answer; ten hooks fit.
const CompileTokens = 1500

// Read parses a model's answer into rules. It accepts only exactly the requested form.
func Read(answer string) ([]Rule, error) {
	text := strings.TrimSpace(answer)
	if inner, ok := strings.CutPrefix(text, "```"); ok {
		_, inner, _ = strings.Cut(inner, "\n")
		text = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(inner), "```"))
	}
	var got struct {
		Hooks []Rule `json:"hooks"`
		Error string `json:"error"`
	}
	if err := strictly(text, &got); err != nil {
		return nil, fmt.Errorf("the model that read the instructions did not answer in the form that was asked for (%w)", err)
	}
	if got.Error != "" {
		return nil, fmt.Errorf("it cannot be said with hooks: %.300s", got.Error)
	}
	if len(got.Hooks) == 0 {
		return nil, errors.New("the model that read the instructions found nothing in them that could happen")
	}
	rules, err := Check(got.Hooks)
	if err != nil {
		return nil, fmt.Errorf("the model that read the instructions made an invalid hook: %w", err)
	}
	return rules, nil
}

// Spelled parses hooks written as a JSON list.
func Spelled(text string) ([]Rule, error) {
	var rules []Rule
	if err := strictly(text, &rules); err != nil {
		return nil, fmt.Errorf("hooks cannot be read: %w", err)
	}
	if len(rules) == 0 {
		return nil, errors.New("there are no hooks in the list")
	}
	return Check(rules)
}

// Spell returns the list that Spelled reads.
func Spell(rules []Rule) string {
	data, err := json.Marshal(rules)
	if err != nil {
		panic(err) // cannot happen with texts and numbers
	}
	return string(data)
}

func strictly(text string, into any) error {
	read := json.NewDecoder(strings.NewReader(text))
	read.DisallowUnknownFields()
	if err := read.Decode(into); err != nil {
		return err
	}
	if _, err := read.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is extra text after it")
	}
	return nil
}
