package runsetup

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/journal"
	"chorus/internal/model"
	"chorus/internal/store/processes"
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
	// Rows asks whether the database has something to say; where it has not, Text need not be asked. The questions of all sources
	// are one look. false, and nil: Text is asked in any case.
	Rows func(at NoteContext) (database.Question, bool)
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
	Toolbox *Toolbox
	Log     *transcript.Log // read only
	Head    *model.Head     // what the run's requests begin with
}

// noteDeadline is what a source may take. They read a few files; one that hangs must not hold a run.
const noteDeadline = time.Second

// notes asks the sources in order. Those that fail or take too long are left out: what the window
// shows of them stays. In silent it remembers which of those that are asked when a run begins had nothing
// to say, and where the window began then.
func (s *Setup) notes(ctx context.Context, sources []NoteSource, at NoteContext, silent map[string]int64) []chat.Noted {
	var due []NoteSource
	begins := at.Log.Begins()
	for _, source := range sources {
		if !source.AtBegin || at.Log.Run() == nil || at.Log.Note(source.What) == "" && silent[source.What] != begins {
			due = append(due, source)
		}
	}
	answers := ask(ctx, s.onRows(due, at), at)
	if ctx.Err() != nil {
		return nil
	}
	var out []chat.Noted
	for i, source := range due {
		shown := at.Log.Note(source.What)
		if err := answers[i].err; err != nil {
			s.Logs.LogOnce(fmt.Sprintf("the note about %s was left out: %v", source.What, err), "notes")
			continue
		}
		text := strings.TrimSpace(answers[i].text)
		if text == "" {
			silent[source.What] = begins
			if text = source.Gone; text == "" || shown == "" {
				continue
			}
		}
		out = append(out, source.noted(shown, untrusted.Defuse("note", text)))
	}
	return out
}

// onRows has the sources that speak of rows asked only if there are some. The first of them looks for all, so that it is the one that is
// left behind if the database does not answer.
func (s *Setup) onRows(sources []NoteSource, at NoteContext) []NoteSource {
	var questions []database.Question
	var found atomic.Pointer[[]bool] // atomic: one that was left behind may still be looking
	look := func(ctx context.Context, i int) (bool, error) {
		if known := found.Load(); known != nil {
			return (*known)[i], nil
		}
		answers, err := s.DB.Any(ctx, questions...)
		if err != nil {
			return false, err
		}
		found.Store(&answers)
		return answers[i], nil
	}
	out := slices.Clone(sources)
	for n, source := range sources {
		if source.Rows == nil {
			continue
		}
		question, ok := source.Rows(at)
		if !ok {
			continue
		}
		i := len(questions)
		questions = append(questions, question)
		out[n].Text = func(ctx context.Context, at NoteContext) (string, error) {
			if some, err := look(ctx, i); err != nil || !some {
				return "", err
			}
			return source.Text(ctx, at)
		}
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

// answer is what a source says.
type answer struct {
	text string
	err  error
}

// ask asks the sources in order, and leaves those behind that do not answer in time. All that answer are asked on one goroutine: most
// look into the database, and the stack of each new one would grow for that.
func ask(ctx context.Context, sources []NoteSource, at NoteContext) []answer {
	var out []answer
	for len(out) < len(sources) && ctx.Err() == nil {
		rest := sources[len(out):]
		asking, leave := context.WithCancel(ctx)
		answers, all := make(chan answer, len(rest)), make(chan struct{})
		go func() {
			defer close(all)
			for _, source := range rest {
				if asking.Err() != nil {
					return
				}
				text, err := source.Text(asking, at)
				answers <- answer{text, err}
			}
		}()
		for answered := -1; len(answers) > answered; {
			answered = len(answers)
			select {
			case <-all:
			case <-ctx.Done():
			case <-time.After(noteDeadline): // the same source may have all of the next one too
				continue
			}
			break
		}
		leave()
		for range len(answers) {
			out = append(out, <-answers)
		}
		if len(out) < len(sources) {
			out = append(out, answer{err: fmt.Errorf("no answer within %s", noteDeadline)})
		}
	}
	return out
}

// noteSources are those of every run, then those that were added when the program was put together.
func (s *Setup) noteSources(thread chat.ThreadID, tools *chosen) []NoteSource {
	sources := []NoteSource{
		{What: "date", Text: func(context.Context, NoteContext) (string, error) {
			return "Today is " + time.Now().Format("Monday, 2 January 2006") + ".", nil
		}},
		{What: "work notes", AtBegin: true, Text: workNotes},
		{What: OtherThreads, AtBegin: true, Gone: "None is active any more.", Text: s.others},
		{What: "processes", Gone: "None runs any more.", Text: s.runningProcesses, Rows: func(NoteContext) (database.Question, bool) { return processes.AnyOpen(), true }},
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
