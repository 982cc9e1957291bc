package runsetup

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/journal"
	"chorus/internal/model"
	"chorus/internal/transcript"
	"chorus/internal/untrusted"
)

// NoteSource says one thing that a model should know besides the conversation, and that changes
// too often for the system prompt. What it says stands at the end of the window whenever it
// differs from what the window shows, so nothing that was sent before changes.
type NoteSource struct {
	What string // what the note is about; one note of a kind counts at a time
	// Text is asked before every request, so it must be cheap when nothing has changed; "" means
	// that there is nothing to say. An error costs only this note, and is logged once.
	Text func(ctx context.Context, at NoteContext) (string, error)
	// Gone is said once when there is nothing to say any more and the window shows otherwise;
	// "": the last note stays.
	Gone string
	// AtBegin: asked only when a run begins, and when a cut has taken the note out of the window.
	// For what an agent changes itself, and for what would be different at every look.
	AtBegin bool
	// Difference says how the text differs from what the window shows, both as they stand there; "" and nil: the whole is
	// said again.
	Difference func(before, after string) string
}

// NoteContext is for whom a note is made.
type NoteContext struct {
	Row     journal.Thread
	Bot     *config.Bot
	Toolbox *Toolbox
	Log     *transcript.Log // read only
	Head    *model.Head     // what the run's requests begin with
}

// noteDeadline is what a source may take. They read a few files; one that hangs must not hold a run.
const noteDeadline = time.Second

// notes asks the sources in order. Those that fail or take too long are left out: what the window
// shows of them stays.
func (s *Setup) notes(ctx context.Context, sources []NoteSource, at NoteContext) []chat.Noted {
	var out []chat.Noted
	for _, source := range sources {
		shown := at.Log.Note(source.What)
		if source.AtBegin && at.Log.Run() != nil && shown != "" {
			continue
		}
		text, err := source.within(ctx, at)
		if ctx.Err() != nil {
			return out
		}
		if err != nil {
			s.Logs.LogOnce(fmt.Sprintf("the note about %s was left out: %v", source.What, err), "notes")
			continue
		}
		if text = strings.TrimSpace(text); text == "" {
			if text = source.Gone; text == "" || shown == "" {
				continue
			}
		}
		out = append(out, source.noted(shown, untrusted.Defuse("note", text)))
	}
	return out
}

// noted is the note for a text: how it differs, where the window shows an earlier one.
func (n NoteSource) noted(shown, text string) chat.Noted {
	if n.Difference != nil && shown != "" && shown != text {
		if difference := n.Difference(shown, text); difference != "" {
			return chat.Noted{What: n.What, Text: difference, Whole: text}
		}
	}
	return chat.Noted{What: n.What, Text: text}
}

// within asks the source, and leaves it behind when it does not answer in time.
func (n NoteSource) within(ctx context.Context, at NoteContext) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, noteDeadline)
	defer cancel()
	type answer struct {
		text string
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		text, err := n.Text(ctx, at)
		answers <- answer{text, err}
	}()
	select {
	case a := <-answers:
		return a.text, a.err
	case <-ctx.Done():
		return "", fmt.Errorf("no answer within %s", noteDeadline)
	}
}

// noteSources are those of every run, then those that were added when the program was put together.
func (s *Setup) noteSources(thread chat.ThreadID, tools *chosen) []NoteSource {
	sources := []NoteSource{
		{What: "date", Text: func(context.Context, NoteContext) (string, error) {
			return "Today is " + time.Now().Format("Monday, 2 January 2006") + ".", nil
		}},
		{What: "work notes", AtBegin: true, Text: workNotes},
		{What: OtherThreads, AtBegin: true, Gone: "None is active any more.", Text: s.others},
		{What: "processes", Gone: "None runs any more.", Text: s.runningProcesses},
		{What: askedPrompt, Text: func(_ context.Context, at NoteContext) (string, error) { return at.Toolbox.promptAsked(), nil }},
	}
	return slices.Concat(s.memoryNotes(thread), sources, tools.servers.notes(), s.NoteSources)
}

func workNotes(ctx context.Context, at NoteContext) (string, error) {
	list, err := at.Toolbox.Notes.List(ctx)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, n := range list {
		fmt.Fprintf(&text, "%s: %s\n", n.Key, n.Value)
	}
	return text.String(), nil
}
