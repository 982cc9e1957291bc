package agents

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"chorus/internal/suggest"
)

// configurable are the keys that Configure changes.
var configurable = []string{"systemPrompt", "model", "permissions", "tools", "rareTools", "webSearch", "worker"}

func (r *Store) set(a *Agent, key, value string) error {
	if modern, ok := spellings[key]; ok {
		key = modern
	}
	switch key {
	case "systemPrompt":
		a.SystemPrompt = value
	case "model":
		value = strings.TrimSpace(value)
		if err := r.checkModel(value); err != nil {
			return err
		}
		a.Model = value
	case "permissions":
		value = strings.TrimSpace(value)
		if value == "" {
			return errors.New("permissions: name a profile")
		}
		if err := r.checkProfile(value); err != nil {
			return err
		}
		a.Permissions = value
	case "tools":
		a.Tools = splitNames(value)
	case "rareTools":
		a.RareTools = splitNames(value)
	case "webSearch":
		on, err := truth(value)
		if err != nil {
			return fmt.Errorf("webSearch: %w", err)
		}
		a.WebSearch = on
	case "worker":
		value = strings.TrimSpace(value)
		if err := CheckWorker(value); err != nil {
			return err
		}
		a.Worker = value
	case "name", "createdAt":
		return fmt.Errorf("%q cannot be changed; it can be: %s", key, strings.Join(configurable, ", "))
	default:
		return r.setOther(a, key, value)
	}
	return nil
}

// CheckWorker returns what is wrong with the kind of an agent's worker.
func CheckWorker(kind string) error {
	if kind == "" || slices.Contains([]string{"claude", "codex", "acp"}, kind) {
		return nil
	}
	return fmt.Errorf("worker: %.40q is unknown; there are claude, codex and acp, or nothing for an agent of our own", kind)
}

// setOther writes a setting that Config.Other knows, at its place in the file.
func (r *Store) setOther(a *Agent, key, value string) error {
	if r.Other == nil {
		return unknownKey(key)
	}
	path, raw, err := r.Other(key, value)
	if err != nil {
		if suggest.Best(key, configurable) != "" && strings.HasPrefix(err.Error(), "unknown") {
			return unknownKey(key)
		}
		return err
	}
	if slices.Contains(configurable, path) { // another spelling of one of ours
		return r.set(a, path, value)
	}
	return a.put(strings.Split(path, "."), raw)
}

func (r *Store) unset(a *Agent, key string) error {
	if modern, ok := spellings[key]; ok {
		key = modern
	}
	switch key {
	case "systemPrompt", "model", "tools", "rareTools", "worker":
		return r.set(a, key, "")
	case "webSearch":
		return r.set(a, key, "false")
	case "permissions":
		return r.set(a, key, defaultProfile)
	}
	return a.put(strings.Split(key, "."), nil)
}

// put sets a value deep in the file; nil removes it.
func (a *Agent) put(path []string, raw json.RawMessage) error {
	a.Extra = maps.Clone(a.Extra) // others may hold the previous map
	if a.Extra == nil {
		a.Extra = map[string]json.RawMessage{}
	}
	if err := putIn(a.Extra, path, raw); err != nil {
		return err
	}
	if len(a.Extra) == 0 {
		a.Extra = nil
	}
	return nil
}

func putIn(into map[string]json.RawMessage, path []string, raw json.RawMessage) error {
	name := path[0]
	if len(path) == 1 {
		if into[name] = raw; raw == nil {
			delete(into, name)
		}
		return nil
	}
	inner := map[string]json.RawMessage{}
	if old, ok := into[name]; ok {
		_ = json.Unmarshal(old, &inner) // anything but an object is replaced
	}
	if inner == nil {
		inner = map[string]json.RawMessage{}
	}
	if err := putIn(inner, path[1:], raw); err != nil {
		return err
	}
	if len(inner) == 0 {
		delete(into, name)
		return nil
	}
	whole, err := json.Marshal(inner)
	if err != nil {
		return err
	}
	into[name] = whole
	return nil
}

func splitNames(value string) []string {
	var names []string
	for name := range strings.SplitSeq(value, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}

func truth(value string) (bool, error) {
	switch v := strings.ToLower(strings.TrimSpace(value)); v {
	case "yes", "on":
		return true, nil
	case "no", "off":
		return false, nil
	default:
		on, err := strconv.ParseBool(v)
		if err != nil {
			return false, fmt.Errorf("%.40q is neither true nor false", value)
		}
		return on, nil
	}
}

func unknownKey(key string) error {
	list := strings.Join(configurable, ", ")
	if meant := suggest.Best(key, configurable); meant != "" {
		return fmt.Errorf("unknown setting %.40q; did you mean %q? there are: %s", key, meant, list)
	}
	return fmt.Errorf("unknown setting %.40q; there are: %s", key, list)
}
