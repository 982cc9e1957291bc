package approval

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// AnswerText is the answer to a question as people write it, from the values of its fields by their names: a line for each. Where a value
// could be taken for something else it is a JSON object. What has no value is left out.
func AnswerText(values map[string][]string) string {
	var lines []string
	object, plain := map[string]any{}, true
	for _, name := range slices.Sorted(maps.Keys(values)) {
		var given []string
		for _, v := range values[name] {
			if v = strings.TrimSpace(v); v != "" {
				given = append(given, v)
			}
		}
		if len(given) == 0 {
			continue
		}
		line := name + ": " + strings.Join(given, ", ")
		lines = append(lines, line)
		plain = plain && !strings.ContainsAny(line, "\n;{") && !strings.ContainsAny(name, ":=")
		if object[name] = given[0]; len(given) > 1 {
			object[name] = given
			plain = plain && !strings.Contains(strings.Join(given, ""), ",")
		}
	}
	if plain {
		return strings.Join(lines, "\n")
	}
	data, _ := json.Marshal(object) // strings and lists of them
	return string(data)
}
