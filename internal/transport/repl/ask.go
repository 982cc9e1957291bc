package repl

import (
	"cmp"
	"context"
	"strings"

	"chorus/internal/approval"
	"chorus/internal/markdown"
	"chorus/internal/theme"
)

// ask shows the next open approval on the terminal. If nobody can be asked, it denies.
func (f *follower) ask(ctx context.Context) {
	for f.open == nil && len(f.approvals) > 0 {
		q := f.approvals[0]
		f.approvals = f.approvals[1:]
		a, err := f.s.Approval(ctx, q.ID)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			f.printer.fail(theme.Bad, "✗ ", "could not read the approval: "+err.Error())
			a = approval.Approval{ID: q.ID, Actions: q.Actions, Rule: q.Rule, Preview: q.Preview, Fields: q.Fields, State: approval.Open}
			a.Call.ID, a.Call.Name = q.Call, q.Name
		case a.State != approval.Open:
			continue // answered meanwhile, here or elsewhere
		}
		if f.noAsking || !f.con.CanAsk() {
			f.deny(ctx, a)
			continue
		}
		f.printer.screen.clear()
		f.printer.screen.print(f.con.Err, f.card(a)...)
		discardTyped(f.con.In)
		f.open, f.offer, f.form = &a, nil, newForm(a)
		if f.form != nil {
			f.printer.screen.print(f.con.Err, f.unframed(framed(markdown.Wrap(formHelp, f.con.room()-2), f.con.errLook()))...)
		}
		f.prompt()
	}
}

func (f *follower) card(a approval.Approval) []string {
	return f.unframed(card(a, f.s.Label(a.Call.Name, a.Call.Args), f.con.cardRoom(), f.con.errLook()))
}

// unframed removes the frame, which a screen reader would read out.
func (f *follower) unframed(lines []string) []string {
	if f.con.Plain {
		for i, line := range lines {
			lines[i] = strings.TrimLeft(line, "┌│└ ")
		}
	}
	return lines
}

func (f *follower) prompt() {
	if f.open == nil {
		return
	}
	words := choices
	if f.con.Plain {
		words = numberedChoices
	}
	switch {
	case f.form != nil:
		f.formPrompt()
		words = f.form.prompt()
	case approval.IsQuestion(f.open.Actions):
		words = questionChoices
	}
	if f.offer != nil {
		words = offerChoices(*f.offer)
	}
	mark := f.con.errLook().Paint(theme.Warn, "└ ")
	if f.con.Plain {
		mark = ""
	}
	f.printer.screen.write(f.con.Err, mark+words+" ")
}

// propose shows what "always" would allow for the open approval.
func (f *follower) propose(ctx context.Context) {
	o, err := f.s.Propose(ctx, f.open.ID)
	if err != nil {
		f.printer.fail(theme.Bad, "✗ ", "could not work out what \"always\" would allow: "+err.Error())
	} else {
		f.printer.screen.print(f.con.Err, f.unframed(offer(o, f.con.cardRoom(), f.con.errLook()))...)
		f.offer = &o
	}
	f.prompt()
}

// deny denies for nobody. In a run of one prompt it also ends the run.
func (f *follower) deny(ctx context.Context, a approval.Approval) {
	label := f.s.Label(a.Call.Name, a.Call.Args)
	f.printer.fail(theme.Bad, "✗ ", "denied, because there is no terminal to ask on: "+cmp.Or(label, a.Call.Name))
	f.own[a.ID] = true
	if err := f.s.Answer(ctx, a.ID, false, "there was no terminal to ask on", false); err != nil {
		f.printer.fail(theme.Bad, "✗ ", "could not answer: "+err.Error())
	}
	if f.noAsking {
		return
	}
	f.denied = true
	if err := f.s.Abort(ctx, false); err != nil {
		f.printer.fail(theme.Bad, "✗ ", "could not stop the run: "+err.Error())
	}
}

// typed takes a line for the open approval. The end of input denies.
func (f *follower) typed(ctx context.Context, line string, ok bool) {
	if f.open == nil {
		return
	}
	var v verdict
	var clear bool
	if f.form != nil && ok {
		v, clear = f.filled(line)
	} else {
		v, clear = f.read(line)
	}
	if !ok {
		v, clear = verdict{note: "the input ended"}, true
		f.printer.screen.write(f.con.Err, "\n")
	}
	switch {
	case !clear:
		f.prompt()
		return
	case v.always && f.offer == nil:
		f.propose(ctx)
		return
	}
	a := *f.open
	f.open, f.offer, f.form = nil, nil, nil
	f.own[a.ID] = true
	if err := f.say(ctx, a.ID, v); err != nil {
		f.printer.fail(theme.Bad, "✗ ", "could not answer: "+err.Error())
		if now, err := f.s.Approval(ctx, a.ID); err == nil && now.State == approval.Open && ok {
			f.open, f.form = &a, newForm(a)
			f.prompt()
			return
		}
	}
	f.ask(ctx)
}

// read parses what was typed as an answer to the approval or to the offer of "always".
func (f *follower) read(line string) (verdict, bool) {
	if f.open != nil && approval.IsQuestion(f.open.Actions) {
		return readAnswer(line)
	}
	if f.offer == nil {
		if word, ok := map[string]string{"1": "yes", "2": "no", "3": "always"}[strings.TrimSpace(line)]; ok && f.con.Plain {
			line = word
		}
		return readVerdict(line)
	}
	if step, ok := pick(*f.offer, line); ok {
		return verdict{ok: true, step: &step}, true
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "s", "session":
		return verdict{ok: true, always: true}, true
	case "a", "always":
		return verdict{}, false // ambiguous
	}
	return readVerdict(line)
}

// say submits an answer.
func (f *follower) say(ctx context.Context, id string, v verdict) error {
	if v.step != nil {
		return f.s.Keep(ctx, id, v.step.Rules)
	}
	return f.s.Answer(ctx, id, v.ok, v.note, v.always)
}

// settled drops an approval that was answered, here or elsewhere.
func (f *follower) settled(id string) {
	if f.open != nil && f.open.ID == id {
		f.open, f.form = nil, nil
	}
	for i, q := range f.approvals {
		if q.ID == id {
			f.approvals = append(f.approvals[:i:i], f.approvals[i+1:]...)
			break
		}
	}
}
