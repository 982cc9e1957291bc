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

// NoteSource supplies one piece of information that a model should have besides the conversation and
// that changes too often for the system prompt. Whenever it differs from what the window shows, it is
// added at the end of the window, so nothing that was sent before changes.
type NoteSource struct {
	What string // the note's subject; only the latest note on a subject counts
	// Text is called before every request, so it must be cheap if nothing has changed. "" means that
	// there is nothing to say. An error only drops this note and is logged once.
	Text func(ctx context.Context, at NoteContext) (string, error)
	// Rows asks whether the database has anything to say; if not, Text is not called. The questions of all
	// sources form one query. If Rows is nil or returns false, Text is always called.
	Rows func(at NoteContext) (database.Question, bool)
	// Gone is said once when there is nothing to say any more but the window
	// still shows a note. If empty, the last note stays.
	Gone string
	// AtBegin sources are asked only when a run begins, and when a cut has removed the note from the window.
	// They are for what an agent changes itself, and for what would differ every time.
	AtBegin bool
	// Difference describes how the text differs from what the window shows; both are given as
	// shown. If it is nil or returns "", the whole text is said again.
	Difference func(before, after string) string
}

// NoteContext says for whom a note is made.
type NoteContext struct {
	Row     journal.Thread
	Toolbox *Toolbox
	Log     *transcript.Log // read only
	Head    *model.Head     // what the run's requests begin with
}

// noteDeadline limits how long the sources may take. They read a few
// files, and one that hangs must not block a run.
const noteDeadline = time.Second

// notes asks the sources in order. It leaves out those that fail or take too long, and the window keeps what
// it shows of them. silent records which AtBegin sources had nothing to say, and where the window began then.
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

// onRows makes sources that depend on rows answer only if there are any. The first of them queries for
// all, so if the database does not answer, that source is the one that times out.
func (s *Setup) onRows(sources []NoteSource, at NoteContext) []NoteSource {
	var questions []database.Question
	var found atomic.Pointer[[]bool] // atomic, because a timed-out source may still be querying
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

// noted returns the note for a text, as a difference if the window shows an earlier version.
func (n NoteSource) noted(shown, text string) chat.Noted {
	if n.Difference != nil && shown != "" && shown != text {
		if difference := n.Difference(shown, text); difference != "" {
			return chat.Noted{What: n.What, Text: difference, Whole: text}
		}
	}
	return chat.Noted{What: n.What, Text: text}
}

// answer is what a source returned.
type answer struct {
	text string
	err  error
}

// ask asks the sources in order and gives up on those that do not answer in time. All that answer run on one
// goroutine: most query the database, and the stack of each new goroutine would have to grow for that.
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
			case <-time.After(noteDeadline): // each further source gets the full time again
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

// noteSources returns the sources of every run, followed by those
// that were added when the program was assembled.
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
