package runsetup

import (
	"context"

	"chorus/internal/pattern"
	"chorus/internal/tool/mcp"
	"chorus/internal/transcript"
	"chorus/internal/untrusted"
)

// askedPrompt is the note with the text of a prompt that somebody asked an MCP server for.
const askedPrompt = "mcp prompt"

// promptLine is how people ask for one: /server:prompt ARGUMENTS.
var promptLine = pattern.Lazy(`(?s)^/([\w.-]+):([\w./-]+)(?:\s+(.*))?$`)

// fetchPrompt gets what a message asks an MCP server for, if it does. The text is told in a note of the run: what the
// person wrote stays as it is.
func (b *Toolbox) fetchPrompt(ctx context.Context, prompt transcript.Waiting) {
	b.mu.Lock()
	hub := b.hub
	b.prompt = ""
	b.mu.Unlock()
	found := promptLine().FindStringSubmatch(prompt.Blocks.Text())
	if hub == nil || found == nil || !hub.Has(found[1]) {
		return
	}
	name := "/" + found[1] + ":" + found[2]
	text, err := hub.Prompt(ctx, found[1], found[2], found[3])
	switch {
	case err != nil:
		text = "The last message asks for the prompt " + name + " of an MCP server, which cannot be had: " + untrusted.Frame("mcp server "+found[1], err.Error()) + "\nSay so."
	default:
		text = "The last message asks for the prompt " + name + " of an MCP server. This is its text; do what the person means by asking for it:\n" +
			untrusted.Frame("prompt "+name, text)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.prompt = text
}

func (b *Toolbox) promptAsked() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.prompt
}

// Prompts are what the thread's MCP servers have ready. Before the first run nothing is known of them.
func (b *Toolbox) Prompts(ctx context.Context) []mcp.Prompt {
	b.mu.Lock()
	hub := b.hub
	b.mu.Unlock()
	if hub == nil {
		return nil
	}
	return hub.Prompts(ctx)
}
