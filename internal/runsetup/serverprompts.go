package runsetup

import (
	"context"

	"chorus/internal/pattern"
	"chorus/internal/tool/mcp"
	"chorus/internal/transcript"
	"chorus/internal/untrusted"
)

// askedPrompt is the subject of the note with an MCP server's prompt that somebody asked for.
const askedPrompt = "mcp prompt"

// promptLine is how people ask for one: /server:prompt ARGUMENTS.
var promptLine = pattern.Lazy(`(?s)^/([\w.-]+):([\w./-]+)(?:\s+(.*))?$`)

// fetchPrompt fetches the MCP prompt that a message asks for, if any. A note of the
// run carries its text; the person's message stays unchanged.
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
		text = "The last message asks for the prompt " + name + " of an MCP server, which is not available: " + untrusted.Frame("mcp server "+found[1], err.Error()) + "\nSay so."
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

// Prompts returns the prompts that the thread's MCP servers offer. Before the first run none are known.
func (b *Toolbox) Prompts(ctx context.Context) []mcp.Prompt {
	b.mu.Lock()
	hub := b.hub
	b.mu.Unlock()
	if hub == nil {
		return nil
	}
	return hub.Prompts(ctx)
}
