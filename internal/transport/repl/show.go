package repl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"chorus/internal/markdown"
	"chorus/internal/theme"
)

// Show prints a conversation up to an event for a later reader: who said what, one line per call, the outcome of each run.
func Show(ctx context.Context, s Session, upTo int64, con Console) error {
	if upTo == 0 {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx) // the watch ends with the last event
	defer cancel()
	r := &reader{con: con, presenter: presenterOf(s), look: con.OutLook(), width: 100, agent: s.Info().Agent, asked: map[string]string{}}
	if con.OutTTY {
		r.width = con.room()
	}
	for item, err := range s.Watch(ctx, 0) {
		if err != nil {
			return err
		}
		if item.Event == nil {
			continue
		}
		for _, n := range r.presenter.tell(item) {
			r.show(n)
		}
		if item.Event.Seq >= upTo {
			r.unfinished()
			for _, seq := range r.presenter.order {
				r.say("waiting: ", r.presenter.prompts[seq].text, theme.Faint)
			}
			return r.err
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errors.New("the conversation ended before its last event was read")
}

// reader prints news as a transcript.
type reader struct {
	con       Console
	presenter *presenter
	look      theme.Theme
	width     int
	agent     string
	asked     map[string]string // the approvals of calls
	speaker   string            // who spoke last
	flow      flow
	err       error
}

func (r *reader) print(t texture, lines ...string) {
	for _, line := range r.flow.next(t, lines) {
		if _, err := io.WriteString(r.con.Out, strings.TrimRight(line, " ")+"\n"); err != nil && r.err == nil {
			r.err = fmt.Errorf("write: %w", err)
		}
	}
}

func (r *reader) say(mark, text string, style theme.Style) {
	lines := say(mark, text, r.width)
	for i := range lines {
		lines[i] = r.look.Paint(style, lines[i])
	}
	r.print(aside, lines...)
}

// speaks prints the speaker's name, unless they also spoke last.
func (r *reader) speaks(name string) {
	if r.speaker == name {
		return
	}
	if r.speaker != "" {
		r.print(blank, "")
	}
	r.speaker = name
	r.print(blank, r.look.Paint(theme.Strong, markdown.Truncate(name, r.width)))
}

func (r *reader) show(n news) {
	switch n := n.(type) {
	case heard:
		name := cmp.Or(n.from.Name, n.from.ID)
		r.speaks(name)
		r.say("  ", n.text, theme.Plain)
	case wroteAll:
		if strings.TrimSpace(n.text) == "" {
			return
		}
		r.speaks(r.agent)
		md := markdown.New(r.width-2, r.look)
		lines := append(md.Write(n.text), md.Close()...)
		if !r.look.Colored() {
			lines = markdown.Wrap(strings.TrimSpace(n.text), r.width-2)
		}
		r.print(prose, indent(lines, "  ", "  ")...)
	case finished:
		r.speaks(r.agent)
		lines := strings.Split(toolLine(n, r.width-2, r.look), "\n")
		if failedCommand(n) { // the end of its output says why
			out, _ := lastLines(resultText(n.ran), r.width-2, r.look)
			lines = append(lines[:1], out...)
		}
		r.print(action, indent(slices.Insert(lines, 1, r.command(n.call)...), "  ", "  ")...)
	case settled:
		r.speaks(r.agent)
		r.say("  ", settledWords(n), theme.Faint)
	case remark:
		r.say("  • ", n.text, theme.Faint)
	case ended:
		if words := endWords(n.RunEnded); words != "" {
			r.say("  ✗ ", words, theme.Bad)
		}
		r.say("  ", sumWords(n.RunEnded), theme.Faint)
	case asked:
		r.asked[n.Call] = n.ID
	case wrote, wroteVoid, began, opened: // their results are shown
	}
}

// command is what a call ran or would run.
func (r *reader) command(c *call) []string {
	lines, cut := ranLines(finished{call: c}, r.width-2, r.look)
	if cut && !r.con.OutTTY { // a pipe gets the full text
		lines = indent(markdown.Diff(commandOf(c), 0, theme.Theme{}), "  $ ", "    ")
	}
	return lines
}

// unfinished prints the calls that wait for somebody's answer, or have no result yet.
func (r *reader) unfinished() {
	for _, c := range r.presenter.calls {
		switch {
		case c.waits:
			r.speaks(r.agent)
			lines := []string{r.look.Paint(theme.Warn, markdown.Truncate("waiting for an answer: "+c.label, r.width-2))}
			lines = append(lines, r.command(c)...)
			lines = append(lines, r.look.Paint(theme.Faint, "  chorus approvals show "+r.asked[c.id]+" tells more"))
			r.print(action, indent(lines, "  ", "  ")...)
		case c.begun:
			r.speaks(r.agent)
			lines := append([]string{"→ " + markdown.Truncate(c.label, r.width-4)}, r.command(c)...)
			r.print(action, indent(lines, "  ", "  ")...)
		}
	}
}
