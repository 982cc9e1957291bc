package repl

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/markdown"
	"chorus/internal/theme"
)

// leaveWithin is how long a first Ctrl-C waits for the second.
const leaveWithin = 3 * time.Second

// handsOff is how long no key may have been pressed before an approval takes the keys
// at once: a letter typed for the input must never answer it.
const handsOff = 800 * time.Millisecond

// away is how long no key may have been pressed before the bell announces an approval: somebody who types sees it.
const away = 10 * time.Second

// box is the editor that receives typed text.
func (w *window) box() *editor {
	return cmp.Or(w.note, &w.input)
}

// key handles one key press.
func (w *window) key(msg tea.KeyPressMsg) tea.Cmd {
	name := msg.String()
	w.lastKey = w.now()
	w.flash = ""
	chord := w.chord
	w.chord = false
	switch name {
	case "ctrl+c":
		w.search, w.menu = nil, menu{}
		w.greet()
		return w.ctrlC()
	case "ctrl+z":
		return tea.Suspend
	}
	if w.card != nil {
		if cmd, taken := w.cardKey(name); taken {
			return cmd
		}
	}
	if w.search != nil {
		w.searchKey(msg)
		return nil
	}
	if cmd, taken := w.menuKey(name); taken {
		return cmd
	}
	return w.inputKey(msg, chord)
}

// inputKey handles a key for the input, or for the note typed in its place.
func (w *window) inputKey(msg tea.KeyPressMsg, chord bool) tea.Cmd {
	switch name := msg.String(); {
	case name == "enter":
		return w.enter()
	case name == "esc":
		if w.works() {
			return w.abort(false)
		}
	case name == "ctrl+d":
		return w.ctrlD()
	case name == "up", name == "ctrl+p":
		w.menu = menu{}
		w.box().vertical(-1, w.inputWidth())
	case name == "down", name == "ctrl+n":
		w.menu = menu{}
		w.box().vertical(1, w.inputWidth())
	case name == "ctrl+r" && w.note == nil:
		w.beginSearch()
	case name == "ctrl+o":
		w.unfold()
	case name == "ctrl+v" && w.note == nil && w.clipboard != nil:
		return w.attach("/attach", "")
	case name == "ctrl+x":
		w.chord = true
	case name == "shift+tab" && w.note == nil:
		return w.plan()
	case w.note == nil && (name == "ctrl+g" || chord && name == "ctrl+e"):
		return w.external()
	case name == "tab":
		// There is nothing to complete, and a tab in a prompt is never meant.
	default:
		if w.box().key(name) || msg.Text != "" {
			if msg.Text != "" {
				w.box().insert(msg.Text)
			}
			return w.complete()
		}
	}
	return nil
}

// plan switches planning on and off for later prompts.
func (w *window) plan() tea.Cmd {
	line, said := "/mode "+chat.ModePlan, "from the next prompt on: "+chat.ModePlan
	if w.s.Info().Mode != "" {
		line, said = "/mode "+chat.NoMode, "from the next prompt on: no mode"
	}
	return w.inTurn(func() tea.Msg {
		if _, err := w.s.Command(w.ctx, line); err != nil {
			return failedMsg{line + ": " + err.Error()}
		}
		return steeredMsg{said} // a server's answer is worded differently
	})
}

func (w *window) ctrlC() tea.Cmd {
	now := w.now()
	again := now.Sub(w.warned) < leaveWithin
	w.warned = now
	switch {
	case w.works() && !w.stopping:
		w.flash = "stopping; Ctrl-C again leaves at once"
		return w.abort(false)
	case w.works():
		return w.leave(ExitInterrupted)
	case again:
		return w.leave(ExitDone)
	case !w.input.empty():
		w.input.take() // the up key brings it back
		w.warned = time.Time{}
		return nil
	}
	w.flash = "Ctrl-C again leaves"
	return nil
}

func (w *window) ctrlD() tea.Cmd {
	switch {
	case !w.box().empty():
		w.box().key("delete")
		return nil
	case w.works():
		w.flash = "the agent is still working; Esc stops it, /exit leaves"
		return nil
	}
	return w.leave(ExitDone)
}

func (w *window) leave(exit int) tea.Cmd {
	w.leaving, w.exit = true, exit
	w.text(w.md.Close())
	return nil // flush quits when everything is printed
}

// enter sends, steers or runs the input.
func (w *window) enter() tea.Cmd {
	if n := len(w.input.text); n > 0 && w.input.text[n-1] == '\\' && w.input.cursor == n {
		w.input.key("backspace")
		w.input.insert("\n")
		return nil
	}
	if strings.TrimSpace(w.input.value()) == "" {
		w.input.set("")
		return nil
	}
	if w.attaching > 0 { // it belongs to these words, not to the next ones
		w.flash = "a file is still being attached; press Enter again in a moment"
		return nil
	}
	if w.moving {
		w.flash = "opening the other session; this stays here for it"
		return nil
	}
	w.menu = menu{}
	text := w.input.take()
	if w.tell != nil {
		if err := w.tell(text); err != nil {
			w.flash = err.Error()
		}
	}
	if name, args, ok := slash(text); ok {
		if sayer, may := maySay(w.s, name, args, w.all); may {
			return w.inTurn(func() tea.Msg {
				if sayer.Says(w.ctx, text) {
					return w.sendNow(strings.TrimSpace(text))
				}
				return slashMsg{name, args}
			})
		}
		return w.command(name, args)
	}
	text = strings.TrimSpace(text)
	if !w.works() {
		return w.send(text)
	}
	if rest, ok := strings.CutPrefix(text, "!"); ok && strings.TrimSpace(rest) != "" {
		return w.steer(strings.TrimSpace(rest), chat.Interrupt)
	}
	return w.steer(text, chat.Inject)
}

// command runs a slash command, here or in the session.
func (w *window) command(name, args string) tea.Cmd {
	line := strings.TrimSpace("/" + name + " " + args)
	switch {
	case name == "exit":
		return w.leave(ExitDone)
	case name == "help":
		w.put(blank, "")
		for _, l := range helpLines(w.all, true, w.room()) {
			w.put(aside, markdown.Wrap(l, w.room())...)
		}
		w.put(blank, "")
	case name == "stop":
		if w.presenter.run == "" && len(w.presenter.order) == 0 {
			w.flash = "nothing is running"
			return nil
		}
		return w.abort(strings.EqualFold(args, "all"))
	case name == "attach":
		return w.attach(line, args)
	case name == "steer":
		if args == "" {
			w.flash = "usage: /steer TEXT"
			return nil
		}
		return w.steer(args, chat.Interrupt)
	case name == themeCommand.Name && args != "":
		return w.setTheme(strings.ToLower(args))
	case args == "" && (!w.works() || name == themeCommand.Name) && w.picks(name):
		return w.pick(name)
	case name == "resume" && w.works():
		w.flash = "a run is active; /stop it first"
	case !known(name, w.all):
		w.say(theme.Warn, "• ", unknownWords(name, w.all))
	default:
		moves := name == "resume" && args != ""
		w.moving = w.moving || moves
		return w.inTurn(func() tea.Msg {
			answer, err := w.s.Command(w.ctx, line)
			var other *Resume
			switch {
			case errors.As(err, &other) || moves:
				return resumeMsg{other, line, err}
			case err != nil:
				return failedMsg{line + ": " + err.Error()}
			}
			return commandMsg{line, answer}
		})
	}
	return nil
}

// inTurn runs what was typed in the order in which it was typed: the library runs each command by itself, and a prompt after /clear would
// sometimes come before it.
func (w *window) inTurn(do func() tea.Msg) tea.Cmd {
	before, done := w.lastTurn, make(chan struct{})
	w.lastTurn = done
	return func() tea.Msg {
		defer close(done)
		if before != nil {
			<-before // it ends: each call to a session has a deadline or ends with the window
		}
		return do()
	}
}

func (w *window) showAnswer(msg commandMsg) {
	w.put(blank, "")
	w.say(theme.Faint, "", msg.line)
	answer := strings.TrimRight(w.presenter.withContext(msg.line, msg.answer, w.s.Info().Window), "\n")
	switch {
	case answer == "":
		w.say(theme.Faint, "  ", "nothing to show")
	case strings.HasPrefix(msg.line, "/diff"):
		w.put(aside, markdown.Diff(answer, w.room(), w.look)...)
	default:
		w.put(aside, wrapRows(answer, w.room())...)
	}
}

func (w *window) send(text string) tea.Cmd {
	return w.inTurn(func() tea.Msg { return w.sendNow(text) })
}

func (w *window) sendNow(text string) tea.Msg {
	receipt, err := w.s.Send(w.ctx, text)
	if err != nil {
		return failedMsg{"could not send it: " + err.Error()}
	}
	return sentMsg{receipt}
}

// sent shows a prompt's place in the queue. A refusal is in the journal and shown
// from there, unless it never got that far.
func (w *window) sent(r Receipt) {
	switch {
	case r.Refused != "" && r.Seq == 0:
		w.say(theme.Warn, "• ", "not taken: "+r.Refused)
	case r.Refused == "" && r.Position > 0:
		w.flash = fmt.Sprintf("waiting, place %d in the queue", r.Position)
	}
}

func (w *window) steer(text string, mode chat.Intake) tea.Cmd {
	return w.inTurn(func() tea.Msg {
		asPrompt, err := w.s.Steer(w.ctx, text, mode)
		switch {
		case err != nil:
			return failedMsg{"could not send it: " + err.Error()}
		case asPrompt:
			return steeredMsg{"nothing was running: sent as a prompt"}
		case mode == chat.Interrupt:
			return steeredMsg{"sent to the running agent, which drops calls it has not started"}
		}
		return steeredMsg{"sent to the running agent"}
	})
}

func (w *window) abort(all bool) tea.Cmd {
	w.stopping = w.presenter.run != ""
	return func() tea.Msg {
		if err := w.s.Abort(w.ctx, all); err != nil {
			return failedMsg{"could not stop it: " + err.Error()}
		}
		return nil
	}
}

// cardKey handles a key while an approval is open.
func (w *window) cardKey(name string) (tea.Cmd, bool) {
	if w.note != nil && w.form != nil {
		return w.formKey(name)
	}
	if w.note != nil {
		switch name {
		case "enter":
			v := verdict{note: strings.TrimSpace(w.note.value())}
			v.ok = approval.IsQuestion(w.card.Actions) && v.note != ""
			return w.answer(v), true
		case "esc", "tab":
			w.note = nil
			return nil, true
		case "up", "down", "ctrl+d":
			return nil, true
		}
		return nil, false
	}
	if name == "tab" {
		w.answering = !w.answering
		w.typing = !w.answering
		return nil, true
	}
	if !w.answering {
		return nil, false
	}
	if w.offer != nil {
		return w.offerKey(name), true
	}
	switch strings.ToLower(name) {
	case "y", "shift+y":
		if f := newForm(*w.card); f != nil && !f.suggested() { // a plain yes is no answer
			w.form = f
			w.nextField()
			return nil, true
		}
		return w.answer(verdict{ok: true}), true
	case "a", "shift+a":
		if approval.IsQuestion(w.card.Actions) {
			w.flash = "r answers it; Tab goes back to typing"
			return nil, true
		}
		return w.propose(), true
	case "n", "shift+n":
		return w.answer(verdict{}), true
	case "r", "shift+r":
		w.form = newForm(*w.card)
		w.nextField()
	case "esc":
		return w.abort(false), true
	default:
		w.flash = "y, n, a or r answers it; Tab goes back to typing"
	}
	return nil, true
}

func (w *window) answer(v verdict) tea.Cmd {
	a := *w.card
	w.card, w.answering, w.note, w.form, w.offer = nil, false, nil, nil, nil
	w.own[a.ID] = true
	word := "no"
	switch {
	case v.always:
		word = "yes, always in this session"
	case v.ok && v.note != "":
		word = strings.ReplaceAll(v.note, "\n", "; ")
	case v.ok:
		word = "yes"
	case v.note != "":
		word = "no: " + v.note
	}
	w.say(theme.Warn, "└ ", word)
	return func() tea.Msg {
		return answeredMsg{a.ID, w.s.Answer(w.ctx, a.ID, v.ok, v.note, v.always)}
	}
}

// answered reports an answer that did not arrive, and asks again if possible.
func (w *window) answered(msg answeredMsg) tea.Cmd {
	if msg.err == nil {
		return nil
	}
	w.say(theme.Bad, "✗ ", "could not answer: "+msg.err.Error())
	return func() tea.Msg {
		a, err := w.s.Approval(w.ctx, msg.id)
		if err != nil || a.State != approval.Open {
			return nil
		}
		return approvalMsg{chat.ApprovalAsked{ID: msg.id}, a, nil}
	}
}

// nextApproval fetches the next approval if none is open.
func (w *window) nextApproval() tea.Cmd {
	if w.card != nil || len(w.approvals) == 0 || w.reading() {
		return nil
	}
	q := w.approvals[0]
	w.approvals = w.approvals[1:]
	return func() tea.Msg {
		a, err := w.s.Approval(w.ctx, q.ID)
		return approvalMsg{q, a, err}
	}
}

// showCard prints the approval in full and opens it.
func (w *window) showCard(msg approvalMsg) {
	a, q := msg.a, msg.asked
	switch {
	case msg.err != nil:
		w.say(theme.Bad, "✗ ", "could not read the approval: "+msg.err.Error())
		a = approval.Approval{ID: q.ID, Actions: q.Actions, Rule: q.Rule, Preview: q.Preview, Fields: q.Fields, State: approval.Open}
		a.Call.ID, a.Call.Name = q.Call, q.Name
	case a.State != approval.Open:
		return
	}
	if w.card != nil { // two were fetched at once
		w.approvals = append([]chat.ApprovalAsked{q}, w.approvals...)
		return
	}
	w.ring = w.now().Sub(w.lastKey) > away
	w.put(blank, "")
	w.put(aside, card(a, w.s.Label(a.Call.Name, a.Call.Args), w.room(), w.look)...)
	w.card, w.answering, w.typing, w.offer = &a, false, false, nil // until it is printed
}

// arm gives the keys to the approval on the screen, once all of it is visible and unless somebody is typing.
func (w *window) arm() {
	if w.card != nil && w.printed() && !w.typing && w.input.empty() && w.now().Sub(w.lastKey) > handsOff {
		w.answering = true
	}
}

// settle closes an approval that was answered, here or elsewhere.
func (w *window) settle(id string) {
	if w.card != nil && w.card.ID == id {
		w.card, w.answering, w.note, w.form = nil, false, nil, nil
	}
	for i, q := range w.approvals {
		if q.ID == id {
			w.approvals = append(w.approvals[:i:i], w.approvals[i+1:]...)
			return
		}
	}
}
