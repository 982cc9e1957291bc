package app

import (
	"context"
	"fmt"
	"io"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/model"
	"chorus/internal/transcript"
)

// Replayed is one request, rebuilt.
type Replayed struct {
	Seq     int64        `json:"seq"`
	Run     string       `json:"run"`
	Step    int          `json:"step"`
	Attempt int          `json:"attempt"`
	Purpose chat.Purpose `json:"purpose"`
	Digest  string       `json:"digest"`
	Rebuilt string       `json:"rebuilt"`
	Same    bool         `json:"same"`
	Why     string       `json:"why,omitempty"` // why it could not be rebuilt
}

// Replay rebuilds every request of a thread from its journal and compares each
// with the digest that was recorded when it was sent.
func (a *App) Replay(ctx context.Context, thread chat.ThreadID, each func(Replayed) error) error {
	blob := func(hash string) ([]byte, error) { return a.DB.Blob(ctx, hash) }
	log := transcript.New(blob)
	var head *model.Head
	for ev, err := range a.DB.AllEvents(ctx, thread, 0) {
		if err != nil {
			return err
		}
		switch b := ev.Body.(type) {
		case chat.RunStarted:
			head = nil
			if b.Head != "" {
				if head, err = a.head(b.Head); err != nil {
					return err
				}
			}
			if b.Renderer != transcript.Renderer {
				return fmt.Errorf("run %s was rendered by %s, this chorus renders %s: it cannot be rebuilt", b.Run, b.Renderer, transcript.Renderer)
			}
		case chat.Asked:
			r := Replayed{Seq: ev.Seq, Run: ev.Run, Step: b.Step, Attempt: b.Attempt, Purpose: b.Purpose, Digest: b.Digest}
			if r.Rebuilt, err = rebuild(log, head, b); err != nil {
				r.Why = err.Error()
			}
			r.Same = r.Rebuilt == r.Digest
			if err := each(r); err != nil {
				return err
			}
		}
		if err := log.Apply(ev); err != nil {
			return err
		}
	}
	return nil
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

// rebuilt is the request that was sent, from the log as it was then.
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

// ExportMarkdown writes a thread for people to read, without secrets: it is made to be
// passed on.
func (a *App) ExportMarkdown(ctx context.Context, w io.Writer, row journal.Thread) error {
	hide := a.Redactor()
	fmt.Fprintf(w, "# %s\n\n%s · %s\n", hide.Clipped(orTitle(row)), row.ID, row.Created.Local().Format("2 January 2006 15:04"))
	for ev, err := range a.DB.AllEvents(ctx, row.ID, 0) {
		if err != nil {
			return err
		}
		if text := hide.Text(markdownOf(ev)); text != "" {
			if _, err := fmt.Fprintf(w, "\n%s\n", text); err != nil {
				return err
			}
		}
	}
	return nil
}

func orTitle(row journal.Thread) string { return first(row.Title, row.ID.Thread()) }

func markdownOf(ev chat.Event) string {
	at := ev.At.Local().Format("15:04")
	switch b := ev.Body.(type) {
	case chat.Received:
		return fmt.Sprintf("## %s, %s\n\n%s", first(b.From.Name, "somebody"), at, b.Blocks.Text())
	case chat.Steered:
		return fmt.Sprintf("## %s, %s (while it worked)\n\n%s", first(b.From.Name, "somebody"), at, b.Blocks.Text())
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
			out = append(out, fmt.Sprintf("## %s, %s\n\n%s", first(ev.Thread.Agent(), "agent"), at, text))
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

// fence puts text into a code block whose fence the text cannot close.
func fence(text, language string) string {
	mark := "```"
	for strings.Contains(text, mark) {
		mark += "`"
	}
	return mark + language + "\n" + strings.TrimRight(text, "\n") + "\n" + mark
}

// SteerFrom gives words to a thread that may be running in another process.
func (a *App) SteerFrom(ctx context.Context, thread chat.ThreadID, text string) (asPrompt bool, err error) {
	me := a.Me()
	e := a.Engine(nil)
	return e.Steer(ctx, thread, chat.Steered{From: chat.Participant{ID: me.ID, Name: me.Name, Kind: chat.Person},
		Principal: me, Blocks: chat.TextBlocks(text), Mode: chat.Interrupt})
}
