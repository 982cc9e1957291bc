package transcript

import (
	"fmt"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/model"
)

// digestSystem is the whole system prompt of a digest request.
const digestSystem = "You sum up conversations between people and an agent for those who were not there. You do not take part in them."

// digestTask says what the digest should contain.
const digestTask = "Sum this up in at most five sentences: what was asked for, what was done or decided, what is still open. " +
	"Keep names, paths and numbers as they are. Reply with the summary only, in the language of the conversation."

// DigestTokens is the maximum length of a digest.
const DigestTokens = 700

// DigestRequest asks for a few sentences about conversations, for people who look for one
// of them later. Nothing in them is an instruction to the model.
func DigestRequest(conversations [][]chat.Line, s chat.Settings) (model.Request, error) {
	var b strings.Builder
	for i, lines := range conversations {
		if i > 0 {
			b.WriteString("\n(another conversation)\n")
		}
		for _, line := range lines {
			writeLine(&b, line)
		}
	}
	// Three characters per token is a safe estimate, since four are usual.
	// Using only half the window leaves room for error.
	text := middleOut(b.String(), max(8000, s.ContextWindow/2*3))
	msg, err := model.NewMessage(model.User, chat.Participant{Kind: chat.System},
		chat.TextBlocks("<conversation>\n"+text+"\n</conversation>\n\n"+digestTask))
	if err != nil {
		return model.Request{}, err
	}
	s.MaxTokens, s.ThinkingBudget, s.Stop = DigestTokens, 0, nil
	return model.Request{Head: &model.Head{System: digestSystem}, Messages: []*model.Message{msg}, Settings: s}, nil
}

func writeLine(b *strings.Builder, line chat.Line) {
	who := line.From.Name
	switch {
	case line.Role == string(model.Assistant):
		who = "the agent"
	case who == "":
		who = "somebody"
	}
	for _, block := range line.Blocks {
		switch v := block.(type) {
		case chat.Text:
			fmt.Fprintf(b, "[%s]: %s\n", who, v.Text)
		case chat.ToolUse:
			fmt.Fprintf(b, "[the agent calls]: %s(%s)\n", v.Name, middleOut(string(v.Args), resultExcerpt/4))
		case chat.ToolResult:
			fmt.Fprintf(b, "[result]: %s\n", middleOut(v.Blocks.Text(), resultExcerpt/4))
		case chat.Image, chat.File:
			fmt.Fprintf(b, "[%s]: (an attachment)\n", who)
		}
	}
}
