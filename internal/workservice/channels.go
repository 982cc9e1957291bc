package workservice

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/work"
)

// Channels are the channels of the chat platforms that this process is connected to. Errors are for people.
type Channels interface {
	// NamedChannels returns the ids of the channels with a name in the caller's place.
	NamedChannels(ctx context.Context, by operation.Caller, name string) ([]string, error)
	// CheckChannel says why a caller may not have things posted in a
	// channel. It accepts channels that are not known here.
	CheckChannel(ctx context.Context, by operation.Caller, channel string) error
	// MayManage says why a caller may not have channels created and archived,
	// and returns the place where they would be created.
	MayManage(ctx context.Context, by operation.Caller, channel string) (place string, err error)
	// OpenThreadFor opens a thread below a channel, or where the caller speaks, and returns its id.
	OpenThreadFor(ctx context.Context, by operation.Caller, channel, name string) (string, error)
}

// channelWanted reports whether a new project should get a channel, and whether somebody asked for
// that. If said is nil, the configuration decides, and its choice applies on chat platforms.
func (h *Handler) channelWanted(by operation.Caller, said *bool) (wanted, asked bool) {
	if said != nil {
		return *said, true
	}
	transport, _, _ := strings.Cut(by.Here, ":")
	return h.o.AutoChannels && (chat.OnPlatform(transport) || by.Session.OnPlatform()), false
}

// wantChannel records whether a project should get a channel.
func (h *Handler) wantChannel(ctx context.Context, by operation.Caller, id string, wanted, board bool) error {
	if !wanted {
		return h.o.Memos.Remember(ctx, work.MemoWantedChannel, id, nil)
	}
	wish := work.ChannelWish{Board: board, By: cmp.Or(by.Principal.Name, by.Principal.String())}
	if h.o.Channels != nil {
		place, err := h.o.Channels.MayManage(ctx, by, "")
		if err != nil {
			return err
		}
		wish.Place = place
	}
	value, err := json.Marshal(wish)
	if err != nil {
		return err
	}
	return h.o.Memos.Remember(ctx, work.MemoWantedChannel, id, value)
}

// wantArchive records that a project's channel should be archived when the project is gone.
func (h *Handler) wantArchive(ctx context.Context, by operation.Caller, p work.Project) error {
	if h.o.Channels != nil {
		if _, err := h.o.Channels.MayManage(ctx, by, p.Channel); err != nil {
			return err
		}
	}
	return h.o.Memos.Remember(ctx, work.MemoArchiveChannel, p.ID, []byte(p.Channel))
}

// SetControlInterface implements the operation of the same name.
func (h *Handler) SetControlInterface(ctx context.Context, by operation.Caller, in operations.ProjectChannelName) (operations.ProjectChannel, error) {
	if _, err := h.project(ctx, by, in.ID); err != nil {
		return operations.ProjectChannel{}, err
	}
	name := strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(in.Channel), "#"))
	if name == "" {
		return operations.ProjectChannel{}, operation.InvalidField("channelName", "channel_name is required")
	}
	if h.o.Channels == nil {
		return operations.ProjectChannel{}, operation.InvalidField("channelName", "Cannot resolve channel name without guild context. Use set_project_channel with a channel_id instead, or ask for it in the channel itself.")
	}
	found, err := h.o.Channels.NamedChannels(ctx, by, name)
	if err != nil {
		return operations.ProjectChannel{}, err
	}
	switch len(found) {
	case 0:
		return operations.ProjectChannel{}, operation.Errorf(operation.NotFound, "No text channel or forum named '%.100s' found in this server", name)
	case 1:
		return h.SetProjectChannel(ctx, by, operations.ProjectChannelLink{ID: in.ID, Channel: found[0]})
	}
	return operations.ProjectChannel{}, operation.Errorf(operation.Conflict, "%d channels are named '%.100s': %s. Use set_project_channel with the channel_id of the one you mean.", len(found), name, strings.Join(found, ", "))
}

// OpenNotesThread implements the operation of the same name.
func (h *Handler) OpenNotesThread(ctx context.Context, by operation.Caller, in operations.NotesThreadStart) (operations.NotesThread, error) {
	p, err := h.project(ctx, by, in.Project)
	if err != nil {
		return operations.NotesThread{}, err
	}
	made := by.Principal.String() + "/" + in.Key
	if in.Key != "" {
		before, err := h.o.Memos.Recall(ctx, openedThread, made)
		if err != nil || len(before) > 0 { // repeated after a lost response
			return operations.NotesThread{ID: string(before), Project: p.ID}, err
		}
	}
	if h.o.Channels == nil {
		return operations.NotesThread{}, operation.Errorf(operation.Unavailable, "no chat platform is connected here, so no thread can be opened; ask where it is")
	}
	id, err := h.o.Channels.OpenThreadFor(ctx, by, p.Channel, "Notes: "+p.Name)
	if err != nil {
		return operations.NotesThread{}, err
	}
	if in.Key != "" {
		if err := h.o.Memos.Remember(ctx, openedThread, made, []byte(id)); err != nil {
			return operations.NotesThread{}, err
		}
	}
	if err := h.o.Memos.Remember(ctx, work.MemoNotesThread, id, []byte(p.ID)); err != nil {
		return operations.NotesThread{}, err
	}
	return operations.NotesThread{ID: id, Project: p.ID}, h.o.Projects.Record(ctx, work.Event{Type: "note.thread", Project: p.ID, By: by.Principal.String(), Text: id})
}

// NotesProject returns the project to whose notes a conversation belongs, or "".
func (h *Handler) NotesProject(ctx context.Context, session chat.ThreadID) (string, error) {
	if !session.OnPlatform() {
		return "", nil
	}
	id, err := h.o.Memos.Recall(ctx, work.MemoNotesThread, session.Thread())
	return string(id), err
}
