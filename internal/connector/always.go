package connector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/digest"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/platform"
	"chorus/internal/room/mark"
	"chorus/internal/room/split"
	"chorus/internal/text"
)

// pressKeep is the action of the list of steps for "always", thisTime its choice to allow only
// the call that was asked for.
const (
	pressKeep = "keep"
	thisTime  = "once"
	maxLabel  = 100 // maximum characters of a choice on platforms
)

// answers is the caller who answers an approval. The approval itself decides whether they may.
func answers(by chat.Principal) operation.Caller {
	return operation.Caller{Principal: by, Scopes: []operation.Scope{operation.Approve, operation.Admin}}
}

// proposeAlways shows what "always" could allow, as a choice.
func (b *Bot) proposeAlways(ctx context.Context, id string, by chat.Principal) platform.Answer {
	a, err := b.Backend.Approval(ctx, id)
	if err != nil {
		return says("This approval no longer exists.")
	}
	if a.State != approval.Open {
		return says(b.tooLate(a))
	}
	if _, err := approval.Weigh(a, by, true); errors.Is(err, approval.ErrMayNot) {
		return says(b.mayNot(a, by))
	}
	offer, err := operations.ProposeRules.Call(ctx, b.Backend, answers(by), operations.ApprovalRef{ID: id})
	switch {
	case err != nil:
		return says(b.UserMessage(err))
	case offer.Never != "":
		return says(text.Sentence(b.MentionPeople(offer.Never)))
	}
	var out strings.Builder
	fmt.Fprintf(&out, "**What should be allowed from now on?**\n%s\n", mark.Small("the rule applies "+mark.Line(offer.Where, 300)+"; `chorus permit allowed list` shows it"))
	choose := platform.Select{Value: platform.ButtonValue(pressKeep, id), Hint: "Choose what to allow", Choices: []platform.Choice{{Label: "Only this time", Value: thisTime}}}
	for _, step := range offer.Rules {
		fmt.Fprintf(&out, "- **%s**\n", mark.Line(step.Means, 200))
		samples(&out, "also allows", step.Also)
		samples(&out, "still asks", step.Still)
		choose.Choices = append(choose.Choices, platform.Choice{Label: split.Clip(step.Means, maxLabel), Value: stepName(step)})
	}
	return platform.Answer{Text: strings.TrimSpace(out.String()), Panel: true, Selects: []platform.Select{choose}}
}

func samples(out *strings.Builder, what string, list []string) {
	if len(list) > 0 {
		fmt.Fprintf(out, "  %s: `%s`\n", what, mark.Line(strings.Join(list, " · "), 300))
	}
}

// stepName identifies a proposal by its rules, so that a choice always means the rules
// that were shown.
func stepName(s operations.RuleStep) string {
	return digest.Of(strings.Join(s.Rules, "\n"))[:32]
}

// answerAlways approves with the chosen step.
func (b *Bot) answerAlways(ctx context.Context, id string, by chat.Principal, chosen string) platform.Answer {
	if chosen == thisTime {
		return replacing(cmp.Or(b.decide(ctx, id, by, true, ""), "Allowed this time."))
	}
	offer, err := operations.ProposeRules.Call(ctx, b.Backend, answers(by), operations.ApprovalRef{ID: id})
	if err != nil {
		return replacing(b.UserMessage(err))
	}
	for _, step := range offer.Rules {
		if stepName(step) != chosen {
			continue
		}
		a, err := b.Backend.Approval(ctx, id)
		if err == nil {
			_, err = operations.AnswerApproval.Call(ctx, b.Backend, answers(by), operations.Answer{ID: id, Approved: true, Always: step.Rules})
			b.publisher.Wake(context.WithoutCancel(ctx), a.Thread)
		}
		if err != nil {
			return replacing(b.UserMessage(err))
		}
		return replacing("Allowed from now on: " + mark.Line(step.Means, 200))
	}
	return replacing("That is no longer available; " + cmp.Or(offer.Never, "press the button again") + ".")
}

func replacing(text string) platform.Answer { return platform.Answer{Text: text, Replace: true} }
