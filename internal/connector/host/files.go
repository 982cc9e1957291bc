package host

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/connector"
	"chorus/internal/images"
	"chorus/internal/journal"
	"chorus/internal/plainfile"
	"chorus/internal/room/attach"
	"chorus/internal/runsetup"
	"chorus/internal/service"
	"chorus/internal/transcript"
	"chorus/internal/window"
)

// SaveFile implements connector.Files.
func (h *Backend) SaveFile(ctx context.Context, thread chat.ThreadID, file chat.File, data []byte) (chat.Blocks, error) {
	row, err := h.Thread(ctx, thread)
	if err != nil {
		return nil, err
	}
	bot, err := h.App.Settings.BotFor(row)
	if err != nil {
		return nil, err
	}
	if _, err := h.App.Home.Ensure(row.Dir); err != nil {
		return nil, err
	}
	if file.Path, err = Lay(row.Dir, file.Path, data); err != nil {
		return nil, err
	}
	file.Wanted, file.Size, file.MediaType = false, int64(len(data)), service.Sniff(data)
	return h.App.shown(ctx, file, data, bot)
}

// shown is what an agent sees of a stored file: its line, followed by its
// picture or its text.
func (h *Host) shown(ctx context.Context, file chat.File, data []byte, bot *config.Bot) (chat.Blocks, error) {
	out := chat.Blocks{file}
	switch {
	case images.Sniff(data) != "" && bot.IncludeImages:
		fitted, media, _, _, err := images.Fit(data, images.Limits{}, runsetup.MaxPixels)
		if err != nil {
			return append(out, chat.Text{Text: fmt.Sprintf("\n[%s cannot be shown as a picture: %v]", file.Name, err)}), nil
		}
		hash, err := h.DB.PutBlob(ctx, fitted)
		if err != nil {
			return nil, err
		}
		out = append(out, chat.Image{Blob: hash, MediaType: media, Name: file.Name, Size: int64(len(fitted))})
	case len(data) > 0 && service.IsText(data) && bot.IncludeTextAttachments && bot.MaxTextAttachmentKB > 0:
		out = append(out, chat.Text{Text: "\n" + window.Attachment(file.Name, string(data), bot.MaxTextAttachmentKB<<10)})
	}
	return out, nil
}

// Lay writes a file into a workspace, at the path or, if another file exists there, next to
// it. It never leaves the workspace, whatever an agent has put there. The same bytes at
// the same path are the same file.
func Lay(dir, at string, data []byte) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	folder := filepath.Join(dir, attach.Folder)
	if count, size := service.Held(folder); count >= service.MaxStored || size+int64(len(data)) > service.MaxStoredBytes {
		return "", connector.Refusal("the attachments folder is full; delete some files")
	}
	if info, err := root.Lstat(attach.Folder); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return "", connector.Refusal("the attachments folder is a link; remove it")
	}
	if err := root.MkdirAll(path.Dir(at), 0o755); err != nil {
		return "", err
	}
	plain := at
	for n := 2; ; n++ {
		there, err := plainfile.ReadIn(root, at, int64(len(data)))
		switch {
		case err == nil && bytes.Equal(there, data):
			return at, nil
		case errors.Is(err, fs.ErrNotExist):
			return at, layDown(root, at, data)
		case n > service.MaxStored:
			return "", connector.Refusal("there are too many files with that name")
		}
		at = attach.Numbered(plain, n)
	}
}

// layDown writes the file completely or not at all.
func layDown(root *os.Root, at string, data []byte) error {
	temp := path.Join(path.Dir(at), ".chorus-"+rand.Text()+".tmp")
	err := root.WriteFile(temp, data, 0o644)
	if err == nil {
		err = root.Rename(temp, at)
	}
	if err != nil {
		_ = root.Remove(temp)
	}
	return err
}

// filesWait limits how long an answer waits for its files. The model is told about later
// files when they arrive.
const filesWait = 30 * time.Second

// AwaitFiles waits for the files of messages that a run is about to show its model for the
// first time. Whoever fetches them writes to the journal; the caller notices that its thread has moved.
func (h *Host) AwaitFiles(ctx context.Context, thread chat.ThreadID, log *transcript.Log) {
	open := log.Wanted()
	if len(open) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, filesWait)
	defer cancel()
	for item, err := range h.Engine(nil).Watch(ctx, thread, log.Seq()) {
		if err != nil || item.Event == nil {
			continue
		}
		switch b := item.Event.Body.(type) {
		case chat.Edited:
			if b.Files {
				open = slices.DeleteFunc(open, func(seq int64) bool { return seq == b.Seq })
			}
		case chat.Deleted:
			open = slices.DeleteFunc(open, func(seq int64) bool { return seq == b.Seq })
		}
		if len(open) == 0 {
			return
		}
	}
}

// Plan implements connector.Outbox. Before a conversation counts as idle, its files on disk
// are brought up to date with the journal, so that after a crash in between both steps are repeated.
func (h *Backend) Plan(ctx context.Context, p journal.Plan) error {
	if err := h.App.Mirrors.CatchUp(ctx, p.Thread); err != nil && ctx.Err() == nil {
		h.App.Logs.LogOnce("the files of a conversation are behind: "+err.Error(), "mirror")
	}
	return h.DB.Plan(ctx, p)
}
