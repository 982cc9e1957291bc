package config

import (
	"bytes"
	"strings"

	"chorus/internal/text"
)

// Schema returns the JSON Schema of a configuration file, for editors: canonical names
// and the other spellings, with the table's lines as hover texts.
func Schema() []byte {
	root := schemaOf(table().root)
	properties, _ := root["properties"].(map[string]any)
	for alias, path := range table().aliases {
		if !strings.Contains(alias, ".") {
			properties[alias] = aliasSchema(path)
			properties[snake(alias)] = aliasSchema(path)
		}
	}
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "Chorus configuration"
	root["description"] = "shared.yaml, guilds/<id>.yaml, bots/<name>.yaml and bots/<name>-<guild>.yaml. null falls back to the built-in default."
	var out bytes.Buffer
	if err := text.WriteIndentedJSON(&out, root, ""); err != nil { // maps of plain values always encode
		return nil
	}
	return out.Bytes()
}

func aliasSchema(path string) map[string]any {
	s := schemaOf(table().branch(path))
	s["description"] = "The same as " + path + "."
	s["deprecated"] = true
	return s
}

func schemaOf(b *branch) map[string]any {
	if b.key != nil {
		return b.key.schema()
	}
	s := map[string]any{"type": []string{"object", "null"}}
	if b == table().root {
		s["type"] = "object"
	}
	if b.group.doc != "" {
		s["description"] = b.group.doc
	}
	if b.each != nil {
		s["additionalProperties"] = schemaOf(b.each)
	} else {
		s["additionalProperties"] = false
	}
	properties := map[string]any{}
	for _, name := range b.order {
		properties[name] = schemaOf(b.fields[name])
		if other := snake(name); other != name {
			again := schemaOf(b.fields[name])
			again["description"] = "The same as " + name + "."
			again["deprecated"] = true
			properties[other] = again
		}
	}
	for alias := range table().aliases {
		if rest, ok := strings.CutPrefix(alias, b.path+"."); ok && b.path != "" {
			properties[rest] = aliasSchema(table().aliases[alias])
			properties[snake(rest)] = aliasSchema(table().aliases[alias])
		}
	}
	if len(properties) > 0 {
		s["properties"] = properties
	}
	return b.otherForms(s)
}

// otherForms adds the short form of an object and the list form of a map.
func (b *branch) otherForms(s map[string]any) map[string]any {
	doc := s["description"]
	switch {
	case b.group.short != "":
		delete(s, "description")
		return map[string]any{"description": doc, "anyOf": []any{b.fields[b.group.short].key.schema(), s}}
	case b.group.named:
		entry := schemaOf(b.each)
		if p, ok := entry["properties"].(map[string]any); ok {
			p["name"] = map[string]any{"type": "string", "description": "Its name."}
			entry["required"] = []string{"name"}
		}
		delete(s, "description")
		return map[string]any{"description": doc, "anyOf": []any{s, map[string]any{"type": "array", "items": entry}}}
	}
	return s
}

// schema returns the schema of one key. A ${VARIABLE} is allowed for any scalar.
func (k *Key) schema() map[string]any {
	doc := k.Doc
	if v := k.Variable(); v != "" {
		doc += " Variable: " + v + "."
	}
	s := map[string]any{"title": strings.ReplaceAll(k.Label, "*", "…"), "description": doc}
	if k.Default != nil {
		s["default"] = k.Default
	}
	variable := map[string]any{"type": "string", "pattern": `\$\{[A-Za-z_][A-Za-z0-9_]*\}`}
	switch k.Kind {
	case Integer, Number:
		number := map[string]any{"type": []string{map[Kind]string{Integer: "integer", Number: "number"}[k.Kind], "null"}}
		if k.Least != nil {
			number["minimum"] = *k.Least
		}
		if k.Most != nil {
			number["maximum"] = *k.Most
		}
		s["anyOf"] = []any{number, variable}
	case Bool:
		s["anyOf"] = []any{map[string]any{"type": []string{"boolean", "null"}}, variable}
	case List:
		s["type"], s["items"] = []string{"array", "null"}, map[string]any{"type": "string"}
	case Text:
		switch {
		case len(k.Choices) > 0:
			s["anyOf"] = []any{map[string]any{"enum": append(anys(k.Choices), nil)}, variable}
		case k.Lines:
			s["type"], s["items"] = []string{"string", "array", "null"}, map[string]any{"type": "string"}
		default:
			s["type"] = []string{"string", "null"}
		}
	}
	return s
}

func anys(texts []string) []any {
	out := make([]any, len(texts))
	for i, text := range texts {
		out[i] = text
	}
	return out
}
