package repl

import (
	"context"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/markdown"
	"chorus/internal/notice"
	"chorus/internal/text"
	"chorus/internal/theme"
)

// window is the chat on a terminal. Finished lines are printed above it and then
// belong to the terminal. The window itself only holds what may still change: the end
// of an answer, the current activity, approvals and the input.
type window struct {
	ctx        context.Context
	s          Session
	look       theme.Theme
	themes     themes // the current theme, and how to choose another
	all        []Command
	hint       string
	first      string // a prompt to send at the start
	picksFirst bool   // another session is chosen before anything else
	head       int64  // history ends here
	tell       func(input string) error
	editor     string // the person's own
	clipboard  func(context.Context) ([]byte, error)
	presenter  *presenter
	md         *markdown.Renderer
	now        func() time.Time

	width, height int
	above         []string // lines to be printed above
	printing      bool     // some of them are being printed
	print         func(lines []string) tea.Cmd
	after         func(time.Duration, tea.Msg) tea.Cmd
	drawn         int  // height of the window on the screen
	clearing      bool // the renderer was asked to move to its first line

	input      editor
	everywhere []string           // input typed in other folders, too
	menu       menu               // completions of the input
	stopAsking context.CancelFunc // stops the pending completion request; nil: there is none
	attaching  int                // files being attached
	lastTurn   chan struct{}      // closed when the last call that was begun in turn has ended; nil: there was none
	search     *search            // search through earlier input; nil: none
	chord      bool               // Ctrl-X was the last key

	lastKey   time.Time
	flash     string // one line about the last key
	warned    time.Time
	stopping  bool
	leaving   bool
	moving    bool    // /resume is on its way; what is typed meanwhile is for the other session
	resume    *Resume // the session to continue
	quitting  bool
	exit      int
	lost      bool
	frame     int
	ticking   bool
	spoke     bool
	begun     bool // lines of the current message are printed
	flow      flow
	folded    []finished // results not shown in full, oldest first
	messages  []message
	ring      bool                 // ring the terminal's bell
	approvals []chat.ApprovalAsked // not yet on the screen
	card      *approval.Approval   // the approval on the screen
	answering bool                 // keys belong to the card
	typing    bool                 // the person chose to keep typing next to the card
	note      *editor              // the reason for a no, or an answer, being typed
	form      *form                // asks for the values of a question, one after the other; nil: there are none
	offer     *approval.Always     // what always would allow, being decided
	offered   *approval.Always     // the offer that is fully printed
	own       map[string]bool      // approvals answered here
}

// The messages of the window.
type (
	itemMsg     struct{ item Item }
	lostMsg     struct{ err error }
	tickMsg     struct{}
	printedMsg  struct{}
	sentMsg     struct{ receipt Receipt }
	slashMsg    struct{ name, args string }
	steeredMsg  struct{ text string }
	failedMsg   struct{ what string }
	approvalMsg struct {
		asked chat.ApprovalAsked
		a     approval.Approval
		err   error
	}
	answeredMsg struct {
		id  string
		err error
	}
	commandMsg struct{ line, answer string }
	resumeMsg  struct {
		other *Resume // nil: there is none, and err says why
		line  string
		err   error
	}
)

var _ tea.Model = (*window)(nil)

func newWindow(ctx context.Context, s Session, o ChatOptions) *window {
	w := &window{
		ctx: ctx, s: s, look: o.Console.Look, head: o.Head, first: o.Prompt, tell: o.Remember,
		all:       append(append(Commands(ctx, s), themeCommand), o.Commands...),
		themes:    themes{name: o.Console.Theme, few: o.Console.FewColors, keep: o.KeepTheme},
		presenter: presenterOf(s), now: time.Now, input: newEditor(o.History), own: map[string]bool{},
		everywhere: o.Everywhere, editor: o.Editor, clipboard: o.Clipboard, picksFirst: o.Pick, hint: o.Hint,
	}
	w.print = func(lines []string) tea.Cmd {
		text := strings.Join(lines, "\n")
		if text == "" {
			text = " " // an empty text would not be printed, not even as a blank line
		}
		return tea.Sequence(tea.Println(text), func() tea.Msg { return printedMsg{} })
	}
	w.after = func(d time.Duration, msg tea.Msg) tea.Cmd {
		return tea.Tick(d, func(time.Time) tea.Msg { return msg })
	}
	w.input.set(o.Draft)
	w.width, w.height = o.Console.size()
	w.md = markdown.New(w.room(), w.look)
	return w
}

func (w *window) room() int { return max(w.width-1, 8) }

// greeting is printed before the window opens, with the key that stops a run.
func (w *window) greeting(stops string) []string {
	info := w.s.Info()
	parts := []string{"chorus"}
	for _, part := range []string{info.Agent, info.Model, info.Dir} {
		if part != "" && part != "chorus" { // the default agent's name
			parts = append(parts, part)
		}
	}
	out := say("", strings.Join(parts, " · "), w.room())
	out = append(out, say("", "/help for commands, "+stops+" stops a run, Ctrl-D leaves", w.room())...)
	for i := range out {
		out[i] = w.look.Paint(theme.Faint, out[i])
	}
	if w.hint != "" {
		out = append(out, say("", w.hint, w.room())...)
	}
	return out
}

// pickWords are shown above the choice of a session, in place of the greeting.
const pickWords = "Choose a session with the arrows and Enter, or type part of its title. Esc starts a new one."

// greet prints the greeting if no other session was chosen.
func (w *window) greet() {
	if w.picksFirst {
		w.picksFirst = false
		w.put(aside, w.greeting("Esc")...)
	}
}

// Init sends the first prompt.
func (w *window) Init() tea.Cmd {
	w.printing = true
	drawn := tea.Batch(w.askBackground(), w.after(fewFrames, printedMsg{}))
	if w.picksFirst {
		return tea.Batch(drawn, w.pick("resume"))
	}
	if strings.TrimSpace(w.first) == "" {
		return drawn
	}
	return tea.Batch(drawn, w.send(w.first))
}

// Update takes one message.
func (w *window) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmds []tea.Cmd
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		if msg.Width > 0 && msg.Height > 0 {
			w.width, w.height = msg.Width, msg.Height
			w.md.SetWidth(w.room())
		}
	case tea.KeyPressMsg:
		cmds = append(cmds, w.key(msg))
	case tea.PasteMsg:
		w.lastKey = w.now()
		w.menu = menu{}
		switch {
		case w.search != nil:
			w.search.query.insertPaste(msg.Content)
			w.find()
		case w.note == nil:
			if path, ok := pastedImage(msg.Content); ok {
				cmds = append(cmds, w.attach("/attach "+path, path))
				break
			}
			w.input.insertPaste(msg.Content)
		default:
			w.note.insertPaste(msg.Content)
		}
	case itemMsg:
		w.lost = false
		cmds = append(cmds, w.take(msg.item))
	case lostMsg:
		if !w.lost {
			w.say(theme.Bad, "✗ ", "the conversation cannot be read: "+msg.err.Error()+"; trying again")
		}
		w.lost = true
	case tickMsg:
		w.ticking = false
		w.frame++
		w.arm()
	case printedMsg:
		w.printing = false
		if w.printed() {
			w.offered = w.offer
			w.arm()
		}
	case tea.BackgroundColorMsg:
		w.background(msg)
	case themeMsg:
		w.say(theme.Faint, "", "theme "+msg.name+", "+msg.until)
	case slashMsg:
		cmds = append(cmds, w.command(msg.name, msg.args))
	case choicesMsg:
		w.choices(msg)
	case attachedMsg:
		w.attaching--
		cmds = append(cmds, func() tea.Msg { return msg.Msg })
	case writtenMsg:
		w.written(msg)
	case sentMsg:
		w.sent(msg.receipt)
	case steeredMsg:
		w.flash = msg.text
	case failedMsg:
		w.failed(msg.what)
	case approvalMsg:
		w.showCard(msg)
	case offerMsg:
		w.showOffer(msg)
	case answeredMsg:
		cmds = append(cmds, w.answered(msg))
	case commandMsg:
		w.showAnswer(msg)
	case resumeMsg:
		if w.moving = msg.other != nil; w.moving {
			w.resume = msg.other
			cmds = append(cmds, w.leave(ExitDone))
		} else if msg.err != nil {
			w.failed(msg.line + ": " + msg.err.Error())
		}
	case notice.Notice:
		w.show(remark{text: msg.Text, bad: msg.Bad})
	}
	w.previewTheme()
	if w.ring {
		w.ring = false
		cmds = append(cmds, tea.Raw("\a"))
	}
	return w, tea.Batch(append(cmds, w.nextApproval(), w.tick(), w.shrink(msg), w.flush())...)
}

// fewFrames is long enough for the renderer to have drawn the current window: at
// the start before anything can be printed above it, at the end so that it is gone.
const fewFrames = 60 * time.Millisecond

// tallest is the maximum height of the window.
func (w *window) tallest() int { return max(w.height/2, min(6, w.height-1)) }

// flush hands the next lines to the terminal: one batch at a time, to keep their
// order, and never more than fit above a window of full height (the one on the screen
// may still be an older, taller one). What scrolls further would drag the window's own
// lines with it.
func (w *window) flush() tea.Cmd {
	switch {
	case w.printing:
		return nil
	case len(w.above) == 0:
		if w.leaving && !w.quitting && w.drawn == 1 {
			w.quitting = true
			return w.after(fewFrames, tea.Quit())
		}
		return nil
	}
	n := min(len(w.above), max(w.height-w.tallest(), 1))
	batch := w.above[:n]
	w.above = append([]string(nil), w.above[n:]...)
	w.printing = true
	return w.print(batch)
}

// tick keeps the spinner moving while something is going on.
func (w *window) tick() tea.Cmd {
	if w.ticking || w.leaving || w.presenter.run == "" {
		return nil
	}
	w.ticking = true
	return w.after(tick, tickMsg{})
}

// works reports whether a run is active. Reading the past, the window meets runs that have ended.
func (w *window) works() bool { return w.presenter.run != "" && !w.reading() }

// reading reports whether the past is still being read.
func (w *window) reading() bool { return w.presenter.last < w.head }

func (w *window) failed(what string) {
	w.greet()
	w.stopping = false
	w.say(theme.Bad, "✗ ", what)
}

// printed reports whether everything to be printed is on the screen.
func (w *window) printed() bool { return len(w.above) == 0 && !w.printing }

// put prints lines above the window.
func (w *window) put(t texture, lines ...string) {
	w.above = append(w.above, w.flow.next(t, lines)...)
}

// say prints a wrapped remark above the window.
func (w *window) say(style theme.Style, mark, text string) {
	lines := say(mark, text, w.room())
	for i := range lines {
		lines[i] = w.look.Paint(style, lines[i])
	}
	w.put(aside, lines...)
}

// take applies one item to the window.
func (w *window) take(item Item) tea.Cmd {
	all := w.presenter.tell(item)
	if item.Event != nil && item.Event.Seq <= w.head {
		for _, n := range all {
			w.remember(n)
		}
		if item.Event.Seq == w.head {
			w.recall()
		}
		return nil
	}
	for _, n := range all {
		w.show(n)
	}
	return nil
}

// show prints a piece of news.
func (w *window) show(n news) {
	switch n := n.(type) {
	case wrote:
		w.spoke = true
		w.text(w.md.Write(n.text))
	case wroteAll:
		if !n.more {
			w.text(w.md.Close())
			w.begun = false
		}
	case wroteVoid:
		w.md.Drop()
		if w.begun {
			w.say(theme.Faint, "✗ ", voidWords)
		}
		w.begun = false
	case finished:
		lines, folded := toolLines(n, w.room(), w.look, "Ctrl-O shows all")
		w.put(action, lines...)
		if folded {
			w.folded = append(w.folded[max(0, len(w.folded)-maxFolded+1):], n)
		}
	case asked:
		w.approvals = append(w.approvals, n.ApprovalAsked)
	case settled:
		w.settle(n.ID)
		if !w.own[n.ID] {
			w.say(theme.Faint, "  ", settledWords(n))
		}
	case heard:
		w.heard(n)
	case remark:
		style := theme.Faint
		if n.bad {
			style = theme.Warn
		}
		w.say(style, "• ", n.text)
	case opened:
		w.spoke, w.stopping = false, false
	case ended:
		w.end(n.RunEnded)
	case began: // the status line says it
	}
}

func (w *window) text(lines []string) {
	if len(lines) > 0 {
		w.put(prose, w.fold(lines)...)
		w.begun = true
	}
}

// fold wraps the lines that a renderer without colour does not wrap.
func (w *window) fold(lines []string) []string {
	if w.look.Colored() || len(lines) == 0 {
		return lines
	}
	return markdown.Wrap(strings.Join(lines, "\n"), w.room())
}

func (w *window) heard(n heard) {
	w.text(w.md.Close())
	w.flash = ""
	mark := "❯ "
	if n.mode != "" {
		mark = "❯ (to the running agent) "
	}
	w.put(blank, "")
	w.say(theme.Strong, mark, shortened(n.text))
	w.put(blank, "")
}

// How much of a message is shown again: somebody who pasted thousands of lines knows them.
const (
	heardLines = 20
	heardEnd   = 3
)

// shortened is the beginning and the end of a long text.
func shortened(said string) string {
	lines := strings.Split(strings.TrimRight(said, "\n"), "\n")
	more := len(lines) - heardLines
	if more <= 0 {
		return said
	}
	begin, end := lines[:heardLines-heardEnd], lines[len(lines)-heardEnd:]
	return strings.Join(begin, "\n") + "\n… " + text.Count(more, "more line") + "\n" + strings.Join(end, "\n")
}

func (w *window) end(e chat.RunEnded) {
	w.text(w.md.Close())
	w.stopping, w.flash = false, ""
	w.approvals, w.card, w.answering, w.note, w.form = nil, nil, false, nil, nil
	if e.Reason == chat.EndDone && !w.spoke && e.Text != "" {
		w.put(prose, markdown.Wrap(e.Text, w.room())...)
	}
	if words := endWords(e); words != "" {
		style := theme.Bad
		if e.Reason == chat.EndAborted {
			style = theme.Warn
		}
		w.say(style, "✗ ", words)
	}
	w.say(theme.Faint, "  ", sumWords(e))
}
