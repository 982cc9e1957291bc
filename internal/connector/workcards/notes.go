package workcards

import (
	"cmp"
	"context"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"

	"chorus/internal/journal"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/platform"
	"chorus/internal/room/mark"
	"chorus/internal/room/split"
	"chorus/internal/work"
)

// A thread that takes the notes of a project starts with a list of them, which is edited as they change. Its buttons show a note to the person who presses, with
// their rights, and offer to turn it into a task. The list is a row of the outbox, as cards are: there is only one, whenever the process dies.

// The sizes of the list and of a shown note.
const (
	maxListed    = 20 // what fits into a message
	maxNoteLabel = 70
	maxNoteText  = 1500
)

// The actions of a note's buttons.
const (
	showNote    = "show"
	promoteNote = "task"
)

// noteMark identifies a note of a project in a button, which has no room for its name.
func noteMark(name string) string { return fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(name))) }

func noteButton(action, label string, n operations.Note) platform.Button {
	return platform.Button{Label: label, Value: platform.ButtonValue(platform.PressNote, action+":"+n.Project+":"+noteMark(n.Name))}
}

// showNotes updates the lists of a project's notes in all threads that take them.
func (c *Cards) showNotes(ctx context.Context, project string, seq int64) error {
	if !c.leads() || !c.Caps().Buttons || !c.Caps().Edits {
		return nil
	}
	threads, err := c.Backend.Memos(ctx, work.MemoNotesThread)
	if err != nil {
		return err
	}
	threads = slices.DeleteFunc(threads, func(m journal.Memo) bool { return string(m.Value) != project || c.closed.is(m.Key) })
	if len(threads) == 0 {
		return nil
	}
	p, err := c.o.Work.Project(ctx, project)
	if err != nil {
		return ignoreUnknown(err)
	}
	list, err := operation.CallWhole(ctx, operations.ListNotes, c.Backend, operation.Caller{Principal: p.Owner, Scopes: []operation.Scope{operation.Read}}, operations.NoteQuery{Project: p.ID})
	if err != nil {
		return err
	}
	body := c.noteList(p, list).Body()
	for _, m := range threads {
		if _, known := c.Platform.Known(m.Key); !known {
			if _, err := c.Platform.Channel(ctx, m.Key); err != nil {
				if platform.Passing(err) {
					return err
				}
				c.closed.add(m.Key) // it is gone, or on another platform
				continue
			}
		}
		if err := c.SetDesired(ctx, journal.Desired{Lane: c.Lane(m.Key), Key: "notes/" + p.ID, Seq: seq, Body: body, Final: true}); err != nil {
			return err
		}
	}
	return nil
}

// noteList is the list of a project's notes, the last changed ones first.
func (c *Cards) noteList(p work.Project, notes []operations.Note) platform.Post {
	slices.SortStableFunc(notes, func(a, b operations.Note) int {
		return cmp.Or(b.Modified.Compare(a.Modified), strings.Compare(a.Name, b.Name))
	})
	text := "📒 **Notes of " + p.Name + "**\n"
	switch n := len(notes); {
	case n == 0:
		text += "There are none yet. Write your ideas here."
	case n > maxListed:
		text += fmt.Sprintf("The %d most recently changed; `/note list` shows all %d.", maxListed, n)
	default:
		text += "Press one to read it."
	}
	post := platform.Post{Text: c.Backend.Redact(text)}
	if c.Caps().MaxPanel > 0 {
		post.Panel = platform.PanelOver
	}
	for _, n := range notes[:min(len(notes), maxListed)] {
		post.More = append(post.More, noteButton(showNote, split.Clip(c.Backend.Redact(n.Title), maxNoteLabel), n))
	}
	return post
}

// pressedNote shows a note, or makes a task of it.
func (c *Cards) pressedNote(ctx context.Context, p platform.Press, id string) platform.Answer {
	parts := strings.Split(id, ":")
	if len(parts) != 3 || parts[0] != showNote && parts[0] != promoteNote {
		return says(otherVersion)
	}
	by := c.o.Caller(p.By, p.In, p.Absent)
	list, err := operation.CallWhole(ctx, operations.ListNotes, c.Backend, by, operations.NoteQuery{Project: parts[1]})
	if err != nil {
		return says(c.UserMessage(err))
	}
	at := slices.IndexFunc(list, func(n operations.Note) bool { return noteMark(n.Name) == parts[2] })
	if at < 0 {
		return says("This note no longer exists.")
	}
	ref := operations.NoteRef{Title: list[at].Name, Project: parts[1]}
	if parts[0] == promoteNote {
		if !p.Allowed.Write {
			return says("You may not write here, so you cannot do this here.")
		}
		t, err := operations.PromoteNote.Call(ctx, c.Backend, by, operations.NotePromotion{Title: ref.Title, Project: ref.Project})
		if err != nil {
			return says(c.UserMessage(err))
		}
		return says(fmt.Sprintf("Created task `%s` from it: %s", t.ID, t.Title))
	}
	n, err := operations.ReadNote.Call(ctx, c.Backend, by, ref)
	if err != nil {
		return says(c.UserMessage(err))
	}
	text := c.Backend.Redact(n.Content)
	answer := platform.Answer{Text: text, Buttons: []platform.Button{noteButton(promoteNote, "Make it a task", n)}}
	if short := split.Clip(text, maxNoteText); short != text {
		answer.Text, answer.File = short+"\n"+mark.Small("The whole note is attached."), platform.File{Name: n.Name, Text: text}
	}
	return answer
}
