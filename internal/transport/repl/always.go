package repl

import (
	"fmt"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"chorus/internal/approval"
	"chorus/internal/markdown"
	"chorus/internal/text"
	"chorus/internal/theme"
)

// offer shows what "always" would allow, below its card: the narrowest step first, with
// samples of what each step would allow and what it would still ask for.
func offer(o approval.Always, width int, look theme.Theme) []string {
	width = max(width, 20)
	bar := look.Paint(theme.Warn, "│") + " "
	out := []string{bar}
	put := func(mark string, style theme.Style, text string) {
		for i, line := range markdown.Wrap(markdown.Visible(text), width-2-len(mark)) {
			if i > 0 {
				mark = strings.Repeat(" ", len(mark))
			}
			out = append(out, bar+mark+look.Paint(style, line))
		}
	}
	if o.Never != "" {
		put("", theme.Strong, text.Sentence(o.Never))
		return out
	}
	put("", theme.Strong, "Always, "+o.Where+":")
	column := len("also allows")
	for i, s := range o.Steps {
		put(fmt.Sprintf("%d  ", i+1), theme.Plain, s.Means)
		for _, r := range s.Rows() {
			if r.Name == "rule" || r.Name == "" { // an expression: its meaning is shown above, and `permit allowed list` shows the rule
				continue
			}
			for k, line := range hardWrap(markdown.Visible(r.Text), width-2-3-column-2) {
				name := r.Name
				if k > 0 {
					name = ""
				}
				out = append(out, bar+"   "+look.Paint(theme.Faint, name+strings.Repeat(" ", column-len(name)))+"  "+line)
			}
		}
	}
	return out
}

// numbers are the keys of the steps: "1", "1-3", or "" if there are none.
func numbers(o approval.Always) string {
	switch len(o.Steps) {
	case 0:
		return ""
	case 1:
		return "1"
	default:
		return "1-" + strconv.Itoa(len(o.Steps))
	}
}

// pick is the step whose number was typed.
func pick(o approval.Always, typed string) (approval.Step, bool) {
	n, err := strconv.Atoi(strings.TrimSpace(typed))
	if err != nil || n < 1 || n > len(o.Steps) {
		return approval.Step{}, false
	}
	return o.Steps[n-1], true
}

// offerChoices is the line below an offer, where lines are typed.
func offerChoices(o approval.Always) string {
	text := "[s]ession, until it ends  [y]es, once  [n]o"
	if keys := numbers(o); keys != "" {
		text = "[" + keys + "] keep  " + text
	}
	return text
}

type offerMsg struct {
	id    string
	offer approval.Always
	err   error
}

// propose fetches what "always" would allow for the approval on the screen.
func (w *window) propose() tea.Cmd {
	id := w.card.ID
	return func() tea.Msg {
		o, err := w.s.Propose(w.ctx, id)
		return offerMsg{id, o, err}
	}
}

func (w *window) showOffer(msg offerMsg) {
	switch {
	case w.card == nil || w.card.ID != msg.id || w.offer != nil: // answered meanwhile, or asked for twice
	case msg.err != nil:
		w.say(theme.Bad, "✗ ", "could not work out what \"always\" would allow: "+msg.err.Error())
	default:
		w.put(aside, offer(msg.offer, w.room(), w.look)...)
		w.offer = &msg.offer
	}
}

// offerKey handles a key while "always" is being decided.
func (w *window) offerKey(name string) tea.Cmd {
	switch strings.ToLower(name) {
	case "s", "shift+s":
		return w.answer(verdict{ok: true, always: true})
	case "y", "shift+y":
		return w.answer(verdict{ok: true})
	case "n", "shift+n":
		return w.answer(verdict{})
	case "esc", "a", "shift+a":
		w.offer = nil
		return nil
	}
	if step, ok := pick(*w.offer, name); ok {
		return w.keep(step)
	}
	w.flash = "a number keeps that rule; s, y or n answer without a rule; Esc goes back"
	return nil
}

func (w *window) offerKeys() string {
	text := "s this session · y once · n no · Esc back"
	if keys := numbers(*w.offer); keys != "" {
		text = keys + " keep always · " + text
	}
	return text
}

// keep approves and keeps a rule.
func (w *window) keep(step approval.Step) tea.Cmd {
	a := *w.card
	w.card, w.answering, w.note, w.form, w.offer = nil, false, nil, nil, nil
	w.own[a.ID] = true
	w.say(theme.Warn, "└ ", keptWords(step))
	return func() tea.Msg { return answeredMsg{a.ID, w.s.Keep(w.ctx, a.ID, step.Rules)} }
}

func keptWords(s approval.Step) string { return "yes, always: " + s.Means }
