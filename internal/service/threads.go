package service

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/model"
	"chorus/internal/operations"
	"chorus/internal/store"
	"chorus/internal/text"
	"chorus/internal/transcript"
	"chorus/internal/usage"
)

// FindThread finds a thread by its full id, or by its visible part: the session id or a unique prefix of it.
func (s *Service) FindThread(ctx context.Context, name string) (journal.Thread, error) {
	if id, err := chat.ParseThreadID(name); err == nil {
		row, err := s.DB.Thread(ctx, id)
		if errors.Is(err, journal.ErrUnknown) {
			return row, fmt.Errorf("there is no thread %s: %w; `chorus thread list` shows them", name, err)
		}
		if err == nil && row.Listing == store.Erased {
			return row, fmt.Errorf("thread %s was deleted and its content is removed: %w", name, journal.ErrUnknown)
		}
		if err == nil && row.Listing == store.Deleted {
			return row, fmt.Errorf("thread %s was deleted: %w; `chorus thread restore` brings it back", name, journal.ErrUnknown)
		}
		return row, err
	}
	found, err := s.DB.ThreadsNamed(ctx, name)
	if err != nil {
		return journal.Thread{}, err
	}
	found = slices.DeleteFunc(found, journal.Thread.Gone)
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return journal.Thread{}, fmt.Errorf("there is no thread %q: %w; `chorus thread list` shows them", name, journal.ErrUnknown)
	default:
		return journal.Thread{}, fmt.Errorf("%q matches %d threads; give more of the id", name, len(found))
	}
}

// Replay rebuilds every request of a thread from its journal and compares each with the digest recorded when it was sent.
func (s *Service) Replay(ctx context.Context, thread chat.ThreadID) iter.Seq2[operations.Replayed, error] {
	return func(yield func(operations.Replayed, error) bool) {
		blob := func(hash string) ([]byte, error) { return s.DB.Blob(ctx, hash) }
		log := transcript.New(blob)
		var head *model.Head
		forgot := 0
		for ev, err := range s.DB.AllEvents(ctx, thread, 0) {
			switch b := ev.Body.(type) {
			case chat.RunStarted:
				head, err = s.headOf(b)
			case chat.Asked:
				r := s.replayed(log, head, ev, b)
				if !r.Same && forgot > 0 {
					r.Why = fmt.Sprintf("cannot be rebuilt: the words of %s were deleted and forgotten", text.Count(forgot, "message"))
				}
				if !yield(r, nil) {
					return
				}
			case chat.Received, chat.Steered, chat.Edited, chat.Imported, chat.Said:
				if wasForgotten(b) {
					forgot++
				}
			}
			if err == nil {
				err = log.Apply(ev)
			}
			if err != nil {
				yield(operations.Replayed{}, err)
				return
			}
		}
	}
}

// wasForgotten reports an event whose text was removed from the journal.
func wasForgotten(body chat.Body) bool {
	switch b := body.(type) {
	case chat.Received:
		return b.Forgotten
	case chat.Steered:
		return b.Forgotten
	case chat.Edited:
		return b.Forgotten
	case chat.Imported:
		return b.Forgotten
	case chat.Said:
		return b.Forgotten
	default:
		return false
	}
}

// headOf returns the head that the requests of a run begin with; nil: it has none.
func (s *Service) headOf(b chat.RunStarted) (*model.Head, error) {
	if !transcript.Rebuilds(b.Renderer) {
		return nil, fmt.Errorf("run %s was rendered by %s, this chorus renders %s: it cannot be rebuilt", b.Run, b.Renderer, transcript.Renderer)
	}
	if b.Head == "" {
		return nil, nil
	}
	return s.Setup.Head(b.Head)
}

func (s *Service) replayed(log *transcript.Log, head *model.Head, ev chat.Event, b chat.Asked) operations.Replayed {
	r := operations.Replayed{Seq: ev.Seq, Run: ev.Run, Step: b.Step, Attempt: b.Attempt, Purpose: b.Purpose, Digest: b.Digest}
	var err error
	if r.Rebuilt, err = rebuild(log, head, b); err != nil {
		r.Why = s.Logs.Redactor().Text(err.Error())
	}
	r.Same = r.Rebuilt == r.Digest
	return r
}

func rebuild(log *transcript.Log, head *model.Head, asked chat.Asked) (string, error) {
	if head == nil {
		return "", fmt.Errorf("the run has no head")
	}
	req, err := rebuilt(log, head, asked)
	if err != nil {
		return "", err
	}
	return req.Digest()
}

// rebuilt returns the request that was sent, from the log at that time.
func rebuilt(log *transcript.Log, head *model.Head, asked chat.Asked) (model.Request, error) {
	if asked.Purpose == chat.ForTurn {
		return log.Request(head, asked.Sees)
	}
	cut, _ := log.Plan(asked.Sees, log.Run().Settings)
	if asked.Purpose == chat.ForExcerpt {
		return log.ExcerptRequest(asked.Sees, cut)
	}
	return log.CompactionRequest(head, asked.Sees, cut)
}

// Export writes a thread without secrets, because exports are passed on. It is written while it is read, so that a long
// thread needs no more memory than a short one.
func (s *Service) Export(ctx context.Context, to io.Writer, row journal.Thread, in operations.ExportRequest) error {
	w := bufio.NewWriterSize(to, 32<<10) // a few events at once
	var err error
	switch in.Format {
	case operations.Markdown:
		err = s.exportMarkdown(ctx, w, row, in)
	case operations.JSONLines:
		err = s.exportLines(ctx, w, row, in)
	case operations.CSV:
		err = s.exportCSV(ctx, w, row, in)
	default:
		return usage.Wrap(fmt.Errorf("unknown format %q; use %s, %s or %s", in.Format, operations.JSONLines, operations.CSV, operations.Markdown))
	}
	if err != nil {
		return err
	}
	return w.Flush()
}

// exportLines writes the journal, an event a line.
func (s *Service) exportLines(ctx context.Context, w io.Writer, row journal.Thread, in operations.ExportRequest) error {
	hide := s.Logs.Redactor()
	for ev, err := range s.DB.AllEvents(ctx, row.ID, 0) {
		if err != nil {
			return err
		}
		if !exported(in, ev) {
			continue
		}
		data, err := json.Marshal(ev)
		if err != nil {
			return err
		}
		if _, err := w.Write(append(hide.JSON(data), '\n')); err != nil {
			return err
		}
	}
	return nil
}

// exportMarkdown writes a thread for people to read.
func (s *Service) exportMarkdown(ctx context.Context, w io.Writer, row journal.Thread, in operations.ExportRequest) error {
	hide := s.Logs.Redactor()
	fmt.Fprintf(w, "# %s\n\n%s · %s\n", hide.Clipped(orTitle(row)), row.ID, row.Created.Local().Format("2 January 2006 15:04"))
	for ev, err := range s.DB.AllEvents(ctx, row.ID, 0) {
		if err != nil {
			return err
		}
		if text := hide.Text(markdownOf(ev)); text != "" && exported(in, ev) {
			if _, err := fmt.Fprintf(w, "\n%s\n", text); err != nil {
				return err
			}
		}
	}
	return nil
}

func orTitle(row journal.Thread) string { return cmp.Or(row.Title, row.ID.Thread()) }

func markdownOf(ev chat.Event) string {
	at := ev.At.Local().Format("15:04")
	switch b := ev.Body.(type) {
	case chat.Received:
		return fmt.Sprintf("## %s, %s\n\n%s", cmp.Or(b.From.Name, "somebody"), at, b.Blocks.Text())
	case chat.Steered:
		return fmt.Sprintf("## %s, %s (while it worked)\n\n%s", cmp.Or(b.From.Name, "somebody"), at, b.Blocks.Text())
	case chat.Imported:
		return fmt.Sprintf("*%d messages imported from %s*", b.Count, b.Source)
	case chat.Refused:
		return "*not answered: " + b.Why + "*"
	case chat.Said:
		if b.Error != nil {
			return fmt.Sprintf("*the model failed: %s*", b.Error.Message)
		}
		var out []string
		if text := b.Blocks.Text(); text != "" {
			out = append(out, fmt.Sprintf("## %s, %s\n\n%s", cmp.Or(ev.Thread.Agent(), "agent"), at, text))
		}
		for _, use := range b.Blocks.Calls() {
			out = append(out, fmt.Sprintf("**%s**\n\n%s", use.Name, fence(string(use.Args), "json")))
		}
		return strings.Join(out, "\n\n")
	case chat.ToolRan:
		head := fmt.Sprintf("*%s: %s*", b.Name, b.Outcome)
		if text := b.Blocks.Text(); text != "" {
			head += "\n\n" + fence(text, "")
		}
		return head
	case chat.ApprovalAnswered:
		word := "denied"
		if b.OK {
			word = "approved"
		}
		return strings.TrimSpace(fmt.Sprintf("*%s by %s* %s", word, b.By, b.Note))
	case chat.Compacted:
		return "*the conversation so far was summarised:*\n\n> " + strings.ReplaceAll(b.Summary, "\n", "\n> ")
	case chat.RunEnded:
		if b.Reason == chat.EndDone {
			return ""
		}
		return fmt.Sprintf("*the run ended: %s* %s", b.Reason, b.Text)
	default:
		return ""
	}
}

// fence puts text into a code block with a fence that the text cannot close.
func fence(text, language string) string {
	mark := "```"
	for strings.Contains(text, mark) {
		mark += "`"
	}
	return mark + language + "\n" + strings.TrimRight(text, "\n") + "\n" + mark
}
