package cli

import (
	"strings"

	"chorus/internal/operation"
)

// example builds an example for a command that has none of its own, with plain values for its arguments. It is "" if the command needs no
// arguments, or one for which there is no plain value.
func (b *bound) example() string {
	words := []string{"  chorus", b.line.Words}
	for i, arg := range b.args {
		value := ""
		for _, f := range b.d.Fields() {
			if b.argument(f) == i {
				value = sample(f, arg.Field)
			}
		}
		if value == "" {
			return ""
		}
		words = append(words, value)
	}
	if len(b.args) == 0 {
		return ""
	}
	if b.d.Effect == operation.Destroys {
		words = append(words, "--yes")
	}
	return strings.Join(words, " ")
}

// sample is an example value: for a thing by its kind, for anything else by the argument's name.
func sample(f operation.Field, argument string) string {
	switch f.Noun {
	case "session", "approval":
		return "01k3"
	case "share":
		return "01k5"
	case "process", "schedule":
		return "01k9"
	case "task":
		if argument == "dependson" {
			return "brave-fox"
		}
		return "calm-otter"
	case "project":
		return "my-web-app"
	case "agent":
		return "frontend"
	case "hook":
		return "nightly-tests"
	case "skill":
		return "deploy"
	case "profile":
		return "careful"
	case "mcp":
		return "files"
	case "node":
		return "oslo"
	case "token":
		return "laptop"
	case "memory":
		return "MEMORY.md"
	}
	switch argument {
	case "branch":
		return "fix-login"
	case "message":
		return `"Fix the login"`
	case "words":
		return `"and run the tests"`
	case "title":
		return `"Release plan"`
	case "content":
		return `"We ship on Fridays."`
	case "file":
		return "shot.png"
	}
	return ""
}
