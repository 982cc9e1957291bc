package config

import (
	"fmt"
	"strings"
)

// referencePage is the table as Markdown, for the guide.
func referencePage() string {
	var b strings.Builder
	for _, section := range Sections() {
		fmt.Fprintf(&b, "### %s\n\n| key | value | default | in a pin | |\n|---|---|---|---|---|\n", section.Title)
		for _, k := range section.Keys {
			fmt.Fprintf(&b, "| `%s`%s | %s | %s | %s | **%s.** %s |\n", k.Path, also(k), valueCell(k), code(k.shown()), yes(k.Pins), strings.ReplaceAll(k.Label, "*", "…"), cell(k.Doc))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func also(k Key) string {
	if len(k.Aliases) == 0 {
		return ""
	}
	return " (also `" + strings.Join(k.Aliases, "`, `") + "`)"
}

func valueCell(k Key) string {
	text := string(k.Kind)
	if k.Secret {
		text = "secret"
	}
	if limits := k.rangeText(); limits != "" {
		text += ", " + limits
	}
	return cell(text)
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + cell(text) + "`"
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return ""
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// shown is the default for people.
func (k Key) shown() string {
	switch v := k.Default.(type) {
	case nil:
		return ""
	case string:
		return fmt.Sprintf("%q", v)
	default:
		return fmt.Sprint(v)
	}
}
