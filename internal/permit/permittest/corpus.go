package permittest

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed bypass
var bypass embed.FS

// Case is a command and the verdict it must have under a preset or under rules.
type Case struct {
	Preset  string // the preset's name, or ""
	Rules   string // the rules as JSON, if Preset is ""
	Verdict string
	Command string
	At      string // file and line
}

// Corpus reads the files in bypass. A header names the preset or holds the rules. Each further
// line is a verdict, a tab and a command, in which ␤ stands for a newline.
func Corpus() ([]Case, error) {
	files, err := bypass.ReadDir("bypass")
	if err != nil {
		return nil, err
	}
	var out []Case
	for _, file := range files {
		data, err := bypass.ReadFile("bypass/" + file.Name())
		if err != nil {
			return nil, err
		}
		var c Case
		for i, line := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n") {
			c.At = fmt.Sprintf("%s:%d", file.Name(), i+1)
			if preset, ok := strings.CutPrefix(line, "# profile: "); ok {
				c.Preset, c.Rules = preset, ""
				continue
			}
			if rules, ok := strings.CutPrefix(line, "# rules: "); ok {
				c.Preset, c.Rules = "", rules
				continue
			}
			if strings.HasPrefix(line, "#") {
				continue
			}
			verdict, command, ok := strings.Cut(line, "\t")
			if !ok || c.Preset+c.Rules == "" {
				return nil, fmt.Errorf("%s: neither a comment nor a case", c.At)
			}
			c.Verdict, c.Command = verdict, strings.ReplaceAll(command, "␤", "\n")
			out = append(out, c)
		}
	}
	return out, nil
}
