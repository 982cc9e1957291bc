package repl

import (
	"context"

	"chorus/internal/desk"
)

// ask puts the next open question on the terminal. Where nobody can be asked the
// answer is no.
func (f *follower) ask(ctx context.Context) {
	for f.open == nil && len(f.questions) > 0 {
		q := f.questions[0]
		f.questions = f.questions[1:]
		a, err := f.s.Approval(ctx, q.ID)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			f.printer.fail(red, "✗ ", "could not read what is asked: "+err.Error())
			a = desk.Approval{ID: q.ID, Actions: q.Actions, Rule: q.Rule, Preview: q.Preview, State: desk.Open}
			a.Call.ID, a.Call.Name = q.Call, q.Name
		case a.State != desk.Open:
			continue // answered meanwhile, here or elsewhere
		}
		if f.noAsking || !f.con.CanAsk() {
			f.deny(ctx, a)
			continue
		}
		f.printer.screen.clear()
		f.printer.screen.print(f.con.Err, f.card(a)...)
		discardTyped(f.con.In)
		f.open = &a
		f.prompt()
	}
}

func (f *follower) card(a desk.Approval) []string {
	return card(a, f.s.Label(a.Call.Name, a.Call.Args), f.con.room(), f.con.tinted())
}

func (f *follower) prompt() {
	if f.open != nil {
		f.printer.screen.write(f.con.Err, f.con.paint(yellow, "└ ")+choices+" ")
	}
}

// deny answers for nobody. In a run of one prompt the run ends there as well.
func (f *follower) deny(ctx context.Context, a desk.Approval) {
	label := f.s.Label(a.Call.Name, a.Call.Args)
	f.printer.fail(red, "✗ ", "denied, since there is no terminal to ask on: "+firstOf(label, a.Call.Name))
	f.own[a.ID] = true
	if err := f.s.Answer(ctx, a.ID, false, "there was no terminal to ask on", false); err != nil {
		f.printer.fail(red, "✗ ", "could not answer: "+err.Error())
	}
	if f.noAsking {
		return
	}
	f.denied = true
	if err := f.s.Abort(ctx, false); err != nil {
		f.printer.fail(red, "✗ ", "could not stop the run: "+err.Error())
	}
}

// typed takes a line for the open question; the end of input is a no.
func (f *follower) typed(ctx context.Context, line string, ok bool) {
	if f.open == nil {
		return
	}
	v, clear := readVerdict(line)
	if !ok {
		v, clear = verdict{note: "the input ended"}, true
		f.printer.screen.write(f.con.Err, "\n")
	}
	if !clear {
		f.prompt()
		return
	}
	a := *f.open
	f.open = nil
	f.own[a.ID] = true
	if err := f.s.Answer(ctx, a.ID, v.ok, v.note, v.always); err != nil {
		f.printer.fail(red, "✗ ", "could not answer: "+err.Error())
		if now, err := f.s.Approval(ctx, a.ID); err == nil && now.State == desk.Open && ok {
			f.open = &a
			f.prompt()
			return
		}
	}
	f.ask(ctx)
}

// settled forgets a question that was answered, here or elsewhere.
func (f *follower) settled(id string) {
	if f.open != nil && f.open.ID == id {
		f.open = nil
	}
	for i, q := range f.questions {
		if q.ID == id {
			f.questions = append(f.questions[:i:i], f.questions[i+1:]...)
			break
		}
	}
}
