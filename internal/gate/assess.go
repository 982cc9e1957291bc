package gate

import (
	"fmt"

	"chorus/internal/chat"
	"chorus/internal/permit"
	"chorus/internal/text"
)

// Limits on how much of a call people are shown: a script may have thousands of parts.
const (
	maxParts    = 40
	maxPartText = 300
)

// Assess returns what people are told about a call that needs their
// approval. own is the risk that its tool declares.
func Assess(j permit.Judgement, own string) chat.Assessment {
	grade, why := j.Risk(permit.Grade(own))
	out := chat.Assessment{Risk: string(grade), RiskWhy: why}
	parts := j.Explained()
	for _, p := range parts[:min(len(parts), maxParts)] {
		out.Parts = append(out.Parts, chat.JudgedPart{Text: text.Clip(p.Text, maxPartText), Verdict: p.Verdict.String(), Why: text.Clip(p.Why, maxPartText), Depth: p.Depth})
	}
	if more := len(parts) - maxParts; more > 0 {
		out.Parts = append(out.Parts, chat.JudgedPart{Text: fmt.Sprintf("… and %d more", more), Verdict: j.Verdict.String()})
	}
	return out
}
