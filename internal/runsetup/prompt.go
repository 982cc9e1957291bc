package runsetup

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"

	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/plainfile"
	"chorus/internal/tool"
	"chorus/internal/tool/files"
	"chorus/internal/untrusted"
)

// ownPreamble is what an agent with tools is told unless preamble is configured.
//
//go:embed prompt.md
var ownPreamble string

// Document is a file that goes into the system prompt.
type Document struct{ Name, Text string }

// PromptData is everything that a system prompt is made of. It excludes whatever changes
// between runs (the date, notes), which would break the cached prefix.
type PromptData struct {
	Preamble     string // how to use tools, with {name}, {dir} and {os}; may be empty
	Name         string
	Dir          string
	Git          bool
	Mode         string
	Identity     string // what every agent is told first: IDENTITY.md
	Agent        string // the agent's own prompt
	Docs         []Document
	Instructions Document
}

// modes maps each mode to what the model is told about it. In plan and review the
// agent has only tools that read; in verify it also has the shell.
var modes = map[string]string{
	chat.ModePlan:      "Only look and think. Change nothing; answer with a plan: steps, files, risks.",
	chat.ModeReview:    "Only look and judge. Change nothing; answer with findings, the gravest first, each with file and line.",
	chat.ModeImplement: "Make the change, in small steps, and check it.",
	chat.ModeVerify:    "Find out whether it works: build, test, try. Do not change files; report what you saw.",
}

// ValidMode returns an error for an unknown mode. The empty mode is valid.
func ValidMode(mode string) error {
	if _, ok := modes[mode]; ok || mode == "" {
		return nil
	}
	return fmt.Errorf("unknown mode %q; there are %s", mode, chat.ModeWords("and"))
}

// InMode reports whether a tool may be used in a mode.
func InMode(mode, name string, readOnly bool) bool {
	switch mode {
	case chat.ModePlan, chat.ModeReview:
		return readOnly || name == "work_notes"
	case chat.ModeVerify:
		return readOnly || name == "work_notes" || name == "bash"
	default:
		return true
	}
}

// preamble returns the text before the agent's own prompt: the configured
// text, if any, or nothing for an agent without tools.
func preamble(bot *config.Bot, tools bool) string {
	switch {
	case !tools:
		return ""
	case bot.IsSet("preamble"):
		return bot.Preamble
	default:
		return ownPreamble
	}
}

// RenderPrompt returns the system prompt.
func RenderPrompt(d PromptData) string {
	dir := d.Dir
	if d.Git {
		dir += " (a git repository)"
	}
	var b strings.Builder
	b.WriteString(strings.NewReplacer("{name}", d.Name, "{dir}", dir, "{os}", runtime.GOOS+"/"+runtime.GOARCH).
		Replace(strings.TrimSpace(d.Preamble)))
	if d.Mode != "" {
		fmt.Fprintf(&b, "\n\nMode: %s. %s", d.Mode, modes[d.Mode])
	}
	if own := strings.TrimSpace(d.Identity + "\n\n" + d.Agent); own != "" {
		b.WriteString("\n\n" + own)
	}
	for _, doc := range d.Docs {
		fmt.Fprintf(&b, "\n\n<doc name=%q>\n%s\n</doc>", doc.Name, doc.Text)
	}
	if in := d.Instructions; in.Text != "" {
		fmt.Fprintf(&b, "\n\n<repository-instructions file=%q>\n%s\n</repository-instructions>", in.Name, in.Text)
	}
	return strings.TrimSpace(b.String())
}

// SystemPrompt returns what a bot's requests begin with in a folder, without
// the repository's instructions, for people to look at.
func (s *Setup) SystemPrompt(ctx context.Context, bot *config.Bot, agent, dir string) (string, error) {
	who, err := s.persona(ctx, agent, bot)
	if err != nil {
		return "", err
	}
	return RenderPrompt(PromptData{Preamble: preamble(bot, bot.ToolsEnabled), Name: agent, Dir: dir, Identity: who.identity, Agent: who.prompt, Docs: who.docs}), nil
}

// Limits of what goes into a system prompt: of one file, and of all docs together.
const (
	MaxDocument = 32 << 10
	maxDocs     = 128 << 10
)

// Instructions reads the repository's own advice: AGENTS.md, or else CLAUDE.md. A command may have put a link
// in its place. Therefore it is read as the read tool would: not from outside the workspace, and only if
// keeps does not withhold it. keeps is asked about its name and about the target of a link.
func Instructions(ctx context.Context, roots *files.Roots, keeps func(path string, link bool) bool) Document {
	for _, name := range []string{"AGENTS.md", "CLAUDE.md"} {
		touched := roots.Access("read", name)
		if slices.ContainsFunc(touched, func(a tool.Access) bool { return keeps(a.Detail, a.Detail != name) }) {
			continue
		}
		file, info, err := roots.OpenJudged(tool.WithCall(ctx, tool.Call{Touches: touched}), "read", files.Place{Root: files.Workspace, Path: name})
		if err != nil {
			continue
		}
		text, ok := "", false
		if info.Mode().IsRegular() {
			text, ok = readText(file)
		}
		_ = file.Close()
		if ok && strings.TrimSpace(text) != "" {
			return Document{name, harmless(text)}
		}
	}
	return Document{}
}

// harmless keeps untrusted text from closing the element that contains it.
func harmless(text string) string {
	return untrusted.Defuse("repository-instructions", strings.TrimSpace(text))
}

// Docs reads an agent's docs folder, sorted by name.
func Docs(dir string) []Document {
	var out []Document
	var names []string
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.HasSuffix(path, ".md") {
			names = append(names, path)
		}
		return nil
	})
	slices.Sort(names)
	total := 0
	for _, path := range names {
		text, ok := ReadText(path)
		if !ok || strings.TrimSpace(text) == "" || total+len(text) > maxDocs {
			continue
		}
		total += len(text)
		rel, _ := filepath.Rel(dir, path)
		out = append(out, Document{filepath.ToSlash(rel), strings.TrimSpace(text)})
	}
	return out
}

// ReadText reads the first part of a regular file as valid text.
func ReadText(path string) (string, bool) {
	f, _, err := plainfile.Open(path)
	if err != nil {
		return "", false
	}
	defer f.Close()
	return readText(f)
}

func readText(f io.Reader) (string, bool) {
	data, err := io.ReadAll(io.LimitReader(f, MaxDocument))
	if err != nil {
		return "", false
	}
	text := strings.ToValidUTF8(string(data), "")
	if len(data) == MaxDocument {
		for !utf8.ValidString(text) {
			text = text[:len(text)-1]
		}
		text += "\n[… the rest of the file is left out …]"
	}
	return text, true
}
