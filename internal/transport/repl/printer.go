package repl

import (
	"strings"
	"time"

	"chorus/internal/chat"
	"chorus/internal/markdown"
	"chorus/internal/theme"
)

// printer shows news as lines: the answer on standard output, everything else on
// standard error. On a terminal the answer appears while it is written.
type printer struct {
	con       Console
	screen    screen
	presenter *presenter
	md        *markdown.Renderer // the text being written, if standard output is a terminal
	// If standard output is not a terminal, the answer is kept until the run ends:
	// it is the last message without calls; all earlier ones were on the way.
	answer   strings.Builder
	complete bool // the answer's message has ended
	frame    int
	quiet    bool // print only approvals and failures
	spoke    bool // the model wrote something in this run
	begun    bool // lines of the current message are on the screen
	flow     flow
}

func newPrinter(con Console, t *presenter, quiet bool) *printer {
	p := &printer{con: con, presenter: t, quiet: quiet}
	switch {
	case quiet || !con.Look.Colored():
	case con.ErrTTY:
		p.screen.live = con.Err
	case con.OutTTY:
		p.screen.live = con.Out
	}
	p.md = markdown.New(con.room(), con.Look)
	return p
}

// streams reports whether the answer is shown while it is written.
func (p *printer) streams() bool { return p.con.OutTTY && !p.quiet }

// show takes news in order.
func (p *printer) show(all []news) {
	for _, n := range all {
		switch n := n.(type) {
		case wrote:
			p.spoke = true
			if p.streams() {
				p.out(p.md.Write(n.text))
			}
		case wroteVoid:
			if p.streams() {
				p.md.Drop()
				if p.begun {
					p.note(theme.Faint, "✗ ", voidWords)
				}
				p.begun = false
			}
		case wroteAll:
			p.message(n)
		case began:
			if p.screen.live == nil { // elsewhere the spinner says it
				p.tool("→ " + markdown.Truncate(n.call.label, p.con.room()-2))
			}
		case finished:
			p.result(n)
		case settled:
			p.note(theme.Faint, "  ", settledWords(n))
		case heard:
			if n.mode != "" {
				p.note(theme.Faint, "  ", "steered: "+n.text)
			}
		case remark:
			style := theme.Faint
			if n.bad {
				style = theme.Warn
			}
			p.note(style, "• ", n.text)
		case ended:
			p.end(n.RunEnded)
		case opened:
			p.spoke = false
		case asked: // the loop asks
		}
	}
}

// message ends one message of the model.
func (p *printer) message(n wroteAll) {
	if p.streams() {
		if !n.more {
			p.out(p.md.Close())
			p.begun = false
		}
		return
	}
	if p.complete { // another message follows, so that was not the answer
		p.onTheWay(p.takeAnswer())
	}
	p.answer.WriteString(n.text)
	switch {
	case n.calls:
		p.onTheWay(p.takeAnswer())
	case !n.more && n.text != "":
		p.complete = true
	}
}

func (p *printer) takeAnswer() string {
	text := p.answer.String()
	p.answer.Reset()
	p.complete = false
	return text
}

func (p *printer) onTheWay(text string) {
	text = strings.TrimSpace(text)
	if text == "" || p.quiet {
		return
	}
	if look := p.con.errLook(); look.Colored() {
		p.screen.print(p.con.Err, markdown.Render(text, p.con.room(), look)...)
		return
	}
	p.screen.print(p.con.Err, markdown.Clean(text))
}

func (p *printer) out(lines []string) {
	if len(lines) > 0 {
		p.screen.print(p.con.Out, p.flow.next(prose, lines)...)
		p.begun = true
	}
}

func (p *printer) tool(line string) {
	if p.quiet {
		return
	}
	lines := []string{line}
	if p.con.ErrTTY {
		lines = p.flow.next(action, lines)
	}
	p.screen.print(p.con.Err, lines...)
}

// result shows how a call ended. Without a terminal one line is enough, since scripts read events. For a failed command it adds the last lines
// of output.
func (p *printer) result(n finished) {
	if !p.con.ErrTTY && !failedCommand(n) {
		p.tool(toolLine(n, p.con.room(), p.con.errLook()))
		return
	}
	lines, _ := toolLines(n, p.con.room(), p.con.errLook(), "")
	for _, line := range lines {
		p.tool(line)
	}
}

// failedCommand reports whether a command ran and failed.
func failedCommand(n finished) bool {
	return commandOf(n.call) != "" && (n.ran.Outcome == chat.Ran || n.ran.Outcome == "") && !n.ran.Succeeded()
}

func (p *printer) note(style theme.Style, mark, text string) {
	if p.quiet {
		return
	}
	p.fail(style, mark, text)
}

// fail prints even in quiet mode.
func (p *printer) fail(style theme.Style, mark, text string) {
	lines := say(mark, text, p.con.room())
	for i := range lines {
		lines[i] = p.con.errLook().Paint(style, lines[i])
	}
	p.screen.print(p.con.Err, lines...)
	p.flow.next(aside, lines)
}

func (p *printer) end(e chat.RunEnded) {
	if p.streams() {
		p.out(p.md.Close())
		if e.Reason == chat.EndDone && e.Text != "" && !p.spoke {
			p.out(markdown.New(p.con.room(), theme.Theme{}).Write(strings.TrimRight(e.Text, "\n") + "\n"))
		}
	} else {
		p.printAnswer(e)
	}
	if words := endWords(e); words != "" {
		p.fail(theme.Bad, "✗ ", words)
	}
	if p.con.ErrTTY && !p.quiet {
		p.screen.print(p.con.Err, p.con.errLook().Paint(theme.Faint, sumWords(e)))
	}
}

// printAnswer prints the answer's text. It removes control characters even on a
// pipe, because many pipes end at a terminal.
func (p *printer) printAnswer(e chat.RunEnded) {
	answer := markdown.Clean(p.takeAnswer())
	if answer == "" && e.Reason == chat.EndDone {
		answer = e.Text
	}
	if answer == "" || p.quiet {
		return
	}
	if !strings.HasSuffix(answer, "\n") {
		answer += "\n"
	}
	p.screen.clear()
	p.screen.write(p.con.Out, answer)
}

// redraw shows the current state.
func (p *printer) redraw() {
	if p.screen.live == nil {
		return
	}
	width, height := p.con.size()
	var lines []string
	if p.streams() {
		tail := p.md.Tail()
		lines = tail[max(0, len(tail)-(height-4)):]
	}
	if what, since := p.presenter.doing(); what != "" {
		p.frame++
		lines = append(lines, statusLine(p.frame, what, time.Since(since), width-1, p.con.errLook()))
		for _, out := range p.presenter.output() {
			lines = append(lines, p.con.errLook().Paint(theme.Faint, "  "+markdown.Truncate(out, width-3)))
		}
	}
	p.screen.draw(lines)
}

// statusLine is the line with the spinner.
func statusLine(frame int, what string, since time.Duration, width int, look theme.Theme) string {
	tail := elapsed(since)
	room := max(width-3-len(tail), 4)
	return look.Paint(theme.Accent, spinner[frame%len(spinner)]) + " " + markdown.Truncate(what, room) + look.Paint(theme.Faint, " "+tail)
}
