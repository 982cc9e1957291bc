// Package selfedit lets an agent change who it is: its system prompt, its docs, its permission profile, its
// model. It promises that every change is judged under tool:self_edit before it happens, that whoever is
// asked sees what would change, and that nothing but these four things can be changed through it.
package selfedit

import (
	"context"
	_ "embed"
	"fmt"
	"path"
	"strings"

	"chorus/internal/tool"
)

//go:embed system_prompt.md
var promptProse string

//go:embed docs.md
var docsProse string

//go:embed permissions.md
var permissionsProse string

//go:embed model.md
var modelProse string

// maxText limits a prompt or a doc: both are part of every request.
const maxText = 32 << 10

// Self is the agent as its tools see it. Implementations are safe for concurrent use.
// Each change takes effect from the next run on. The returned texts are for the model. A
// mistake that the model can correct is a tool.Mistake.
type Self interface {
	Texts
	// SetPermissions sets the agent's profile, SetModel its model.
	SetPermissions(ctx context.Context, profile string) (said string, err error)
	SetModel(ctx context.Context, model string) (said string, err error)
}

// Texts are the agent's own words about itself.
type Texts interface {
	Prompt(ctx context.Context) (string, error)
	SetPrompt(ctx context.Context, prompt string) (said string, err error)
	// Doc returns "" if there is no such doc. SetDoc with "" removes it. Paths are clean and local.
	Doc(ctx context.Context, path string) (string, error)
	SetDoc(ctx context.Context, path, text string) (said string, err error)
}

// judged is the tool name under which permission rules cover all of these.
const judged = "self_edit"

func touches(detail string) []tool.Access { return []tool.Access{{Tool: judged, Detail: detail}} }

// Tools returns the four tools on an agent.
func Tools(self Self) []tool.Tool {
	return []tool.Tool{promptTool(self), docsTool(self), permissionsTool(self), modelTool(self)}
}

type promptInput struct {
	Prompt string `json:"new_prompt" jsonschema:"the whole new system prompt"`
}

func promptTool(self Self) tool.Tool {
	return tool.New(tool.Func[promptInput]{
		Rare: true,
		Name: "self_edit_system_prompt", Description: promptProse, Risk: tool.High, JudgedAs: []string{judged},
		Access: func(promptInput) []tool.Access { return touches("system_prompt") },
		Label:  func(promptInput) string { return "change my system prompt" },
		Preview: func(ctx context.Context, in promptInput) string {
			old, err := self.Prompt(ctx)
			if err != nil {
				return ""
			}
			return instead(old, in.Prompt)
		},
		Run: func(ctx context.Context, in promptInput) (tool.Result, error) {
			switch {
			case strings.TrimSpace(in.Prompt) == "":
				return tool.Fail("A system prompt cannot be empty; write all of it."), nil
			case len(in.Prompt) > maxText:
				return tool.Fail(tooLong("A system prompt")), nil
			}
			return result(ctx)(self.SetPrompt(ctx, strings.TrimSpace(in.Prompt)))
		},
	})
}

type docsInput struct {
	Path    string `json:"path" jsonschema:"the doc, below your docs folder, ending in .md"`
	Content string `json:"content" jsonschema:"the whole text; empty takes the doc away"`
}

// doc returns the path as it is judged and written.
func (in docsInput) doc() string {
	return path.Clean(strings.TrimPrefix(strings.TrimSpace(in.Path), "@docs/"))
}

func docsTool(self Self) tool.Tool {
	return tool.New(tool.Func[docsInput]{
		Rare: true,
		Name: "self_edit_docs", Description: docsProse, Risk: tool.Medium, JudgedAs: []string{judged},
		Access: func(in docsInput) []tool.Access { return touches("docs " + in.doc()) },
		Label:  func(in docsInput) string { return "change my doc " + in.doc() },
		Preview: func(ctx context.Context, in docsInput) string {
			if wrongDoc(in.doc()) != "" {
				return ""
			}
			old, err := self.Doc(ctx, in.doc())
			if err != nil {
				return ""
			}
			return instead(old, in.Content)
		},
		Run: func(ctx context.Context, in docsInput) (tool.Result, error) {
			if wrong := wrongDoc(in.doc()); wrong != "" {
				return tool.Fail(wrong), nil
			}
			if len(in.Content) > maxText {
				return tool.Fail(tooLong("A doc")), nil
			}
			return result(ctx)(self.SetDoc(ctx, in.doc(), in.Content))
		},
	})
}

func wrongDoc(name string) string {
	switch {
	case name == "." || name == ".." || strings.HasPrefix(name, "../") || strings.HasPrefix(name, "/") || strings.ContainsAny(name, "\\\x00"):
		return fmt.Sprintf("%.80q is outside your docs; name a file below them, such as conventions.md.", name)
	case !strings.HasSuffix(name, ".md") || strings.HasPrefix(path.Base(name), "."):
		return "Docs are .md files; only those are shown to you. Other files belong into your workspace."
	default:
		return ""
	}
}

type permissionsInput struct {
	Profile string `json:"profile" jsonschema:"name of a permission profile"`
}

func permissionsTool(self Self) tool.Tool {
	return tool.New(tool.Func[permissionsInput]{
		Rare: true,
		Name: "self_edit_permissions", Description: permissionsProse, Risk: tool.High, JudgedAs: []string{judged},
		Access: func(in permissionsInput) []tool.Access {
			return touches("permissions " + strings.TrimSpace(in.Profile))
		},
		Label: func(in permissionsInput) string { return "change my permissions to " + strings.TrimSpace(in.Profile) },
		Run: func(ctx context.Context, in permissionsInput) (tool.Result, error) {
			return result(ctx)(self.SetPermissions(ctx, strings.TrimSpace(in.Profile)))
		},
	})
}

type modelInput struct {
	Model string `json:"model" jsonschema:"provider/model, or a part of a model's name that only one has"`
}

func modelTool(self Self) tool.Tool {
	return tool.New(tool.Func[modelInput]{
		Rare: true,
		Name: "self_edit_model", Description: modelProse, Risk: tool.Medium, JudgedAs: []string{judged},
		Access: func(in modelInput) []tool.Access { return touches("model " + strings.TrimSpace(in.Model)) },
		Label:  func(in modelInput) string { return "change my model to " + strings.TrimSpace(in.Model) },
		Run: func(ctx context.Context, in modelInput) (tool.Result, error) {
			return result(ctx)(self.SetModel(ctx, strings.TrimSpace(in.Model)))
		},
	})
}

func tooLong(what string) string {
	return fmt.Sprintf("%s may have %d bytes; it goes into every request. Make it shorter, or put the rest into a doc.", what, maxText)
}

// result is what the model is told. Whatever is wrong, it can try something else.
func result(ctx context.Context) func(said string, err error) (tool.Result, error) {
	return func(said string, err error) (tool.Result, error) {
		if err != nil {
			return tool.Fail(err.Error()), ctx.Err()
		}
		return tool.OK(said), nil
	}
}

// instead shows a text in place of another.
func instead(old, now string) string {
	if old == now {
		return ""
	}
	var b strings.Builder
	for _, side := range []struct{ sign, text string }{{"-", old}, {"+", now}} {
		for line := range strings.Lines(side.text) {
			b.WriteString(side.sign + strings.TrimSuffix(line, "\n") + "\n")
		}
	}
	return b.String()
}
