package transcript

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"chorus/internal/chat"
	"chorus/internal/model"
)

// Defaults of the budget: what is reserved for system prompt, tools and answer, and how
// much of the newest conversation a compaction keeps word for word.
const (
	DefaultReserve    = 16384
	DefaultKeepRecent = 20000
)

// Over reports whether the next request would leave less room than the
// reserve, or show more messages than are kept.
func (l *Log) Over(s chat.Settings) bool {
	return s.ContextWindow > 0 && l.Tokens() > s.ContextWindow-reserve(s) || s.Summary.AfterMessages > 0 && l.tooManySpoken(s.Summary)
}

func reserve(s chat.Settings) int {
	if s.Reserve > 0 {
		return s.Reserve
	}
	// The reserve must not use up a small window.
	return min(DefaultReserve, s.ContextWindow/2)
}

func keepRecent(s chat.Settings) int {
	n := s.KeepRecent
	if n <= 0 {
		n = DefaultKeepRecent
	}
	if s.ContextWindow > 0 {
		n = min(n, s.ContextWindow/4)
	}
	return n
}

// Cut describes where a compaction would cut.
type Cut struct {
	UpTo     int64 // places up to this one are summarised
	Old      int   // messages summarised
	Kept     int   // messages kept word for word
	Split    bool  // the first kept message is in the middle of a turn
	Previous bool  // the oldest message is the summary of an earlier compaction
}

// Plan says where a compaction would cut now. It returns false if there is nothing to leave out.
func (l *Log) Plan(sees int64, s chat.Settings) (Cut, bool) {
	next, err := l.upcoming(sees)
	if err != nil {
		return Cut{}, false
	}
	all := append(slices.Clip(slices.Clone(l.window)), next...)
	keep := keepRecent(s)
	forced := l.run != nil && l.run.TooLong > 0
	if forced {
		// The provider's window is smaller than we think, so keep less each time.
		keep >>= min(l.run.Compacted, 8)
	}
	at, split := cutAt(all, keep)
	if n := keepSpoken(all, s.Summary.KeepMessages); n > at && !forced && spoken(all) > s.Summary.AfterMessages && s.Summary.AfterMessages > 0 {
		at, split = n, false
	}
	if at == 0 && forced {
		at = lastWordsAt(all)
	}
	if at == 0 || at == 1 && all[0].kind == summary {
		return Cut{}, false
	}
	return Cut{
		UpTo: all[at-1].place, Old: at, Kept: len(all) - at, Split: split,
		Previous: all[0].kind == summary,
	}, true
}

// cutAt walks back until it has collected keep tokens. It cuts at the first message from there
// that is not a result, so that calls and results stay together. If only results follow, the
// summary covers everything. 0 means there is nothing to cut.
func cutAt(all []entry, keep int) (at int, split bool) {
	sum, i := 0, len(all)
	for i > 0 && sum < keep {
		i--
		sum += MessageTokens(all[i].msg)
	}
	if sum < keep || i == 0 {
		return 0, false
	}
	for i < len(all) && all[i].kind == results {
		i++
	}
	if i < len(all) && all[i].kind == said {
		split = true
	}
	return i, split
}

// lastWordsAt returns the index of the newest words, the least that must be kept.
func lastWordsAt(all []entry) int {
	for i := len(all) - 1; i > 0; i-- {
		if all[i].kind == words {
			return i
		}
	}
	return 0
}

// CompactionRequest asks for the summary on top of the live prefix, so that
// the provider's cache still covers what was sent before.
func (l *Log) CompactionRequest(head *model.Head, sees int64, cut Cut) (model.Request, error) {
	req, err := l.Request(head, sees)
	if err != nil {
		return req, err
	}
	msg, err := model.NewMessage(model.User, chat.Participant{Kind: chat.System}, chat.TextBlocks(instruction(cut)))
	if err != nil {
		return req, err
	}
	req.Messages = append(req.Messages, msg)
	req.Settings.MaxTokens = summaryTokens(req.Settings)
	return req, nil
}

// summaryTokens is the maximum length of a summary: the setting, or else four fifths of the reserve.
func summaryTokens(s chat.Settings) int {
	if s.Summary.MaxTokens > 0 {
		return s.Summary.MaxTokens
	}
	return reserve(s) * 8 / 10
}

func instruction(cut Cut) string {
	var b strings.Builder
	b.WriteString("<compaction>\nThe conversation is about to outgrow your context window. Write the summary that will stand in place of its older part. Do not call tools and do not answer the conversation; reply with the summary only.\n\n")
	if cut.Kept > 0 {
		fmt.Fprintf(&b, "The newest %d messages stay as they are; summarise what comes before them.\n", cut.Kept)
	}
	if cut.Previous {
		b.WriteString("The first message is the summary of an earlier part. Carry over what still matters in it and bring it up to date.\n")
	}
	if cut.Split {
		b.WriteString("The messages that stay begin in the middle of a turn. Add a section \"## Turn Context (split turn)\" with: Original Request, Early Progress, Context for Suffix.\n")
	}
	b.WriteString(sections)
	b.WriteString("\n</compaction>")
	return b.String()
}

const sections = `Use these sections, each short and exact (keep file paths, function names, commands and error messages word for word):
## Goal
## Constraints & Preferences
## Progress
### Done
### In Progress
### Blocked
## Key Decisions
## Next Steps
## Critical Context`

// excerptSystem is the whole system prompt of the smaller compaction request.
const excerptSystem = "You summarise conversations between people and an agent so that the agent can go on with its work. You do not take part in them."

// Prompts for the summary of a conversation.
const (
	conversationSystem      = "You are a helpful assistant that summarizes conversations."
	conversationInstruction = "Summarize the conversation above in a few sentences. Keep project names, task IDs, repository names, decisions that were made and questions that are still open. Reply with the summary only."
)

// resultExcerpt is how much of a tool's output goes into an excerpt.
const resultExcerpt = 2000

// ExcerptRequest asks for the summary of a shortened copy of the
// conversation. It is used when the live prefix no longer fits.
func (l *Log) ExcerptRequest(sees int64, cut Cut) (model.Request, error) {
	next, err := l.upcoming(sees)
	if err != nil {
		return model.Request{}, err
	}
	var settings chat.Settings
	if l.run != nil {
		settings = l.run.Settings
	}
	text := serialise(append(slices.Clip(slices.Clone(l.window)), next...), cut.UpTo, settings.Summary.Conversation)
	// Three characters per token is a safe estimate, since four are usual.
	// Using only half the window leaves room for error.
	text = middleOut(text, max(8000, settings.ContextWindow/2*3))
	system, wanted := excerptSystem, instruction(Cut{Previous: cut.Previous, Split: cut.Split})
	if settings.Summary.Conversation {
		system, wanted = conversationSystem, conversationInstruction
	}
	msg, err := model.NewMessage(model.User, chat.Participant{Kind: chat.System},
		chat.TextBlocks("<conversation>\n"+text+"\n</conversation>\n\n"+wanted))
	if err != nil {
		return model.Request{}, err
	}
	settings.MaxTokens = summaryTokens(settings)
	return model.Request{Head: &model.Head{System: system}, Messages: []*model.Message{msg}, Settings: settings, Blob: l.blob}, nil
}

// serialise writes messages as text, one per line. With named, each line says who spoke.
func serialise(all []entry, upTo int64, named bool) string {
	var b strings.Builder
	for _, e := range all {
		if e.place > upTo {
			break
		}
		for _, block := range e.msg.Blocks {
			switch v := block.(type) {
			case chat.Text:
				who := "User"
				switch {
				case e.msg.Role == model.Assistant:
					who = "Assistant"
				case named && e.kind == words && e.msg.From.Name != "":
					who = e.msg.From.Name
				}
				fmt.Fprintf(&b, "[%s]: %s\n", who, v.Text)
			case chat.ToolUse:
				fmt.Fprintf(&b, "[Assistant tool call]: %s(%s)\n", v.Name, middleOut(string(v.Args), resultExcerpt))
			case chat.ToolResult:
				fmt.Fprintf(&b, "[Tool result]: %s\n", middleOut(v.Blocks.Text(), resultExcerpt))
			case chat.Image, chat.File:
				b.WriteString("[User]: (an attachment)\n")
			}
		}
	}
	return b.String()
}

// middleOut cuts out the middle of a text. It keeps more of the end than of the beginning.
func middleOut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	head, tail := n*3/10, n*7/10
	for head > 0 && !utf8.RuneStart(s[head]) {
		head--
	}
	from := len(s) - tail
	for from < len(s) && !utf8.RuneStart(s[from]) {
		from++
	}
	return fmt.Sprintf("%s\n[… %d characters left out …]\n%s", s[:head], from-head, s[from:])
}

// Mechanical builds a summary without a model: what was asked, what was used,
// what came before. It is used when no model can write one.
func (l *Log) Mechanical(sees int64, cut Cut) string {
	next, err := l.upcoming(sees)
	if err != nil {
		next = nil
	}
	var asked []string
	tools := map[string]int{}
	previous := ""
	for _, e := range append(slices.Clip(slices.Clone(l.window)), next...) {
		if e.place > cut.UpTo {
			break
		}
		switch e.kind {
		case summary:
			previous = e.msg.Blocks.Text()
		case words:
			if text := strings.TrimSpace(e.msg.Blocks.Text()); text != "" && e.msg.Role == model.User {
				asked = append(asked, middleOut(text, 400))
			}
		case said:
			for _, use := range e.msg.Blocks.Calls() {
				tools[use.Name]++
			}
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d older messages were left out because they no longer fit; no model could be asked for a summary of them.\n", cut.Old)
	if len(asked) > 0 {
		fmt.Fprintf(&b, "\n## Goal\nFirst request: %s\n", asked[0])
		if rest := asked[max(1, len(asked)-5):]; len(rest) > 0 {
			b.WriteString("\nLatest requests among them:\n")
			for _, a := range rest {
				fmt.Fprintf(&b, "- %s\n", a)
			}
		}
	}
	if len(tools) > 0 {
		b.WriteString("\n## Progress\nTools used:")
		for _, name := range slices.Sorted(maps.Keys(tools)) {
			fmt.Fprintf(&b, " %s ×%d", name, tools[name])
		}
		b.WriteByte('\n')
	}
	if previous != "" {
		fmt.Fprintf(&b, "\n## Critical Context\nEarlier summary:\n%s\n", middleOut(previous, 6000))
	}
	return b.String()
}

// Files returns the files read and changed so far, sorted. A changed file is not listed as read.
func (l *Log) Files() (read, modified []string) {
	modified = slices.Sorted(slices.Values(l.modified))
	for _, f := range slices.Sorted(slices.Values(l.read)) {
		if !slices.Contains(modified, f) {
			read = append(read, f)
		}
	}
	return read, modified
}

// compacted replaces everything up to its place with the summary.
func (l *Log) compacted(ev chat.Event, b chat.Compacted) error {
	if r := l.run; r != nil {
		r.Open, r.Lost, r.Errors, r.Failing, r.TooLong, r.Failure = false, 0, 0, time.Time{}, 0, nil
		r.Compacted++
		r.Usage = r.Usage.Plus(b.Usage)
	}
	if err := l.cutBefore(b.UpTo + 1); err != nil {
		return err
	}
	l.read, l.modified = b.Read, b.Modified
	text := summaryText(b)
	if l.run != nil && l.run.Settings.Summary.Conversation {
		text = "[CONVERSATION SUMMARY — earlier messages]\n" + strings.TrimSpace(b.Summary)
	}
	msg, err := model.NewMessage(model.User, chat.Participant{Kind: chat.System}, chat.TextBlocks(text))
	if err != nil {
		return err
	}
	l.window = slices.Insert(l.window, 0, entry{place: b.UpTo, seq: ev.Seq, kind: summary, msg: msg, at: ev.At})
	return nil
}

func summaryText(b chat.Compacted) string {
	var s strings.Builder
	s.WriteString("<compaction-summary>\n")
	s.WriteString(strings.TrimSpace(b.Summary))
	s.WriteByte('\n')
	list := func(tag string, files []string) {
		if len(files) > 0 {
			fmt.Fprintf(&s, "\n<%s>\n%s\n</%s>\n", tag, strings.Join(files, "\n"), tag)
		}
	}
	list("read-files", b.Read)
	list("modified-files", b.Modified)
	s.WriteString("</compaction-summary>")
	return s.String()
}

// cutBefore drops the window's messages before a place. Results whose call is dropped
// are dropped too, and edits that waited for this take effect.
func (l *Log) cutBefore(place int64) error {
	kept := slices.DeleteFunc(slices.Clone(l.window), func(e entry) bool { return e.place < place })
	for len(kept) > 0 && kept[0].kind == results {
		kept = kept[1:]
	}
	var out []entry
	for _, e := range kept {
		ed, changed := l.edits[e.seq]
		switch {
		case changed && ed.Deleted && e.kind == said && len(e.msg.Blocks.Calls()) == 0: // a deleted answer
		case !changed || e.kind != words:
			out = append(out, e)
		case !ed.Deleted:
			msg, err := model.NewMessage(e.msg.Role, e.msg.From, ed.Blocks)
			if err != nil {
				return err
			}
			e.msg = msg
			out = append(out, e)
		}
	}
	l.window = out
	l.hidden = slices.DeleteFunc(l.hidden, func(e entry) bool { return e.place < place })
	if !l.deferring() {
		l.dropNotes() // the messages themselves now have the new words
	}
	l.edits = map[int64]edit{}
	l.forgetNotes()
	l.used, l.usedAt = 0, 0
	l.sent, l.rolled = sent{}, l.place
	if l.turn != nil && !slices.ContainsFunc(out, func(e entry) bool { return e.kind == said && e.seq == l.turn.Seq }) {
		l.turn = nil
	}
	return nil
}

// forgetNotes makes every note be shown again after a cut, except those that are still to be placed.
func (l *Log) forgetNotes() {
	shown := l.notes
	l.notes = map[string]string{}
	for _, it := range l.pending {
		if text, ok := shown[it.what]; ok {
			l.notes[it.what] = text
		}
	}
}

// SummaryWay says how to make the next attempt at a summary, given how the last one went:
// on top of the live prefix, from an excerpt, or without a model.
func (r *Run) SummaryWay() (purpose chat.Purpose, mechanical bool) {
	f := r.Failure
	first := chat.ForCompaction
	if r.Settings.Summary.Conversation {
		first = chat.ForExcerpt // a short text, without the tools
	}
	if f == nil {
		return first, false
	}
	tooLong := f.Kind == string(model.TooLong)
	hopeless := f.Kind == string(model.Refused) || f.Kind == string(model.BadRequest)
	switch {
	case r.Purpose == chat.ForExcerpt:
		return chat.ForExcerpt, tooLong || hopeless
	case tooLong:
		// The live prefix is as long as the turn that did not fit.
		return chat.ForExcerpt, false
	default:
		return first, hopeless && r.Purpose == chat.ForCompaction
	}
}
