package roster

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"chorus/internal/near"
)

// configurable are the keys that Configure changes.
var configurable = []string{"systemPrompt", "model", "permissions", "tools", "webSearch"}

func (r *Roster) set(a *Agent, key, value string) error {
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
	case "webSearch":
		on, err := truth(value)
		if err != nil {
			return fmt.Errorf("webSearch: %w", err)
		}
		a.WebSearch = on
	case "name", "createdAt":
		return fmt.Errorf("%q cannot be changed; it can be: %s", key, strings.Join(configurable, ", "))
	default:
		return unknownKey(key)
	}
	return nil
}

func splitNames(value string) []string {
	var names []string
	for _, name := range strings.Split(value, ",") {
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
	if meant := near.Best(key, configurable); meant != "" {
		return fmt.Errorf("unknown setting %.40q; did you mean %q? there are: %s", key, meant, list)
	}
	return fmt.Errorf("unknown setting %.40q; there are: %s", key, list)
}
