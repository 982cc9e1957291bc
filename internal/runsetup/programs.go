package runsetup

import (
	"context"
	"errors"
	"strings"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/engine"
	"chorus/internal/gate"
	"chorus/internal/journal"
	"chorus/internal/permit"
	"chorus/internal/permit/canonical"
	"chorus/internal/sandbox"
)

// programs judges what the commands of a run start, as the profile says.
func (s *Setup) programs(g *gate.Judge, row journal.Thread, bot *config.Bot, profile string) func(call string) sandbox.Judge {
	return s.programsAsking(g, row, bot, profile, func(ctx context.Context, call string, program sandbox.Exec, why gate.Asked) error {
		if !g.Choice.Snapshot().CanAsk {
			return errors.New("it needs approval, and there is no terminal to ask on")
		}
		asking, err := s.Gate.Asking(row, bot, profile)
		if err != nil {
			return err
		}
		run, use, _ := strings.Cut(call, "/")
		d := why.Decision
		if d.Action == "" { // no rule matched it
			d.Action, d.Argv = "tool:bash:"+line(program.Argv), program.Argv
		}
		asks := approval.Approval{Thread: row.ID, Run: run, Call: chat.ToolUse{ID: use, Name: "bash"}, Dir: program.Dir(), Rule: d.Rule,
			Assessment: gate.Assess(permit.Judgement{Verdict: d.Verdict, Decisions: []permit.Decision{d}, Options: g.Place}, string(permit.HighRisk)), Actions: why.Actions, Bound: approval.Facts{Each: why.Each}.Encode(), Reason: "a running command wants to start it", AskedBy: payer(g.Work), Payer: payer(g.Work)}
		if by := program.By(); len(by) > 0 {
			asks.Reason = "`" + line(by) + "` wants to start it"
		}
		return s.Gate.Engine(nil).AskDuring(ctx, asks, asking)
	})
}

// programsAsking is programs with another way to ask; if ask is nil, nobody can be asked.
func (s *Setup) programsAsking(g *gate.Judge, row journal.Thread, bot *config.Bot, profile string, ask gate.Ask) func(call string) sandbox.Judge {
	return g.Programs(bot.Profiles[profile].Children, ask, func(ctx context.Context, call string, program sandbox.Exec, audit approval.Audit) error {
		hide := s.Gate.Logs.Redactor()
		audit.Agent, audit.Thread, audit.Principal, audit.Action = row.Agent, row.ID, payer(g.Work), hide.Text("tool:bash:"+line(program.Argv))
		audit.Run, audit.Call, _ = strings.Cut(call, "/")
		if by := program.By(); audit.Detail == "" && len(by) > 0 {
			audit.Detail = hide.Text("started by `" + line(by) + "`")
		}
		return s.Gate.DB.Audit(ctx, audit)
	})
}

// payer returns the principal on whose words a run works.
func payer(work engine.Work) chat.Principal {
	if len(work.Senders) == 0 {
		return chat.Principal{}
	}
	return work.Senders[0].Principal
}

// line formats an argument vector as a command.
func line(argv []string) string {
	words := make([]string, len(argv))
	for i, word := range argv {
		words[i] = canonical.Word(word)
	}
	return strings.Join(words, " ")
}
