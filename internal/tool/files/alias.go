package files

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"chorus/internal/tool"
)

func readAliases() []tool.Alias {
	return []tool.Alias{
		tool.Also("read_file"),
		tool.Also("view"),
		tool.Converted("ReadFile", lines),
	}
}

// lines converts startLine and endLine to offset and limit.
func lines(fields map[string]json.RawMessage) error {
	number := func(name string) (int, bool, error) {
		raw, ok := fields[name]
		delete(fields, name)
		if !ok || string(raw) == "null" {
			return 0, false, nil
		}
		if raw[0] == '"' {
			raw = raw[1 : len(raw)-1]
		}
		n, err := strconv.Atoi(string(raw))
		if err != nil {
			return 0, false, errors.New("'" + name + "' must be an integer")
		}
		return n, true, nil
	}
	start, from, err := number("startLine")
	if err != nil {
		return err
	}
	end, to, err := number("endLine")
	if err != nil {
		return err
	}
	start = max(start, 1)
	if from {
		fields["offset"] = json.RawMessage(strconv.Itoa(start))
	}
	if to {
		fields["limit"] = json.RawMessage(strconv.Itoa(max(end-start+1, 1)))
	}
	return nil
}

func writeAliases() []tool.Alias {
	return []tool.Alias{
		tool.Also("create_file"),
		tool.Also("write_file"),
		tool.Converted("append_file", func(fields map[string]json.RawMessage) error {
			fields["append"] = json.RawMessage("true")
			return nil
		}),
		tool.Converted("WriteFile", func(fields map[string]json.RawMessage) error {
			if raw, ok := fields["overwrite"]; !ok || string(raw) == "null" {
				fields["overwrite"] = json.RawMessage("false")
			}
			return move(fields, "filePath", "path")
		}),
	}
}

func editAliases() []tool.Alias {
	return []tool.Alias{
		tool.Renamed("str_replace", map[string]string{"old_str": "old_string", "new_str": "new_string"}),
		tool.Renamed("FileEdit", map[string]string{"filePath": "path", "oldString": "old_string", "newString": "new_string", "replaceAll": "replace_all"}),
	}
}

func hashlineAliases() []tool.Alias {
	return []tool.Alias{tool.Converted("HashlineEdit", func(fields map[string]json.RawMessage) error {
		var edits []map[string]json.RawMessage
		if raw, ok := fields["edits"]; ok {
			if err := json.Unmarshal(raw, &edits); err != nil {
				return errors.New("'edits' must be a list of objects")
			}
		}
		for _, e := range edits {
			for name, raw := range e {
				switch {
				case string(raw) == "null":
					delete(e, name)
				case name == "lines" && raw[0] == '"':
					e[name] = slices.Concat([]byte("["), raw, []byte("]"))
				}
			}
		}
		if edits != nil {
			raw, err := json.Marshal(edits)
			if err != nil {
				return err
			}
			fields["edits"] = raw
		}
		return move(fields, "filePath", "path")
	})}
}

func listAliases() []tool.Alias {
	return []tool.Alias{
		tool.Renamed("ListFiles", map[string]string{"sortBy": "", "maxDepth": ""}),
	}
}

func move(fields map[string]json.RawMessage, from, to string) error {
	raw, ok := fields[from]
	if !ok {
		return nil
	}
	if _, both := fields[to]; both {
		return errors.New("both '" + from + "' and '" + to + "' were given")
	}
	delete(fields, from)
	fields[to] = raw
	return nil
}
