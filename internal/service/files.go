package service

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/datadir"
	"chorus/internal/id"
	"chorus/internal/images"
	"chorus/internal/journal"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/runsetup"
	"chorus/internal/settings"
	"chorus/internal/store"
	"chorus/internal/window"
)

// Limits for uploads: more than a model can read, and little enough to do no harm.
const (
	maxAttachment  = 25 << 20
	maxAttachments = 10   // with one message
	MaxStored      = 1000 // in one session
	MaxStoredBytes = 500 << 20
	maxFileName    = 120
)

// Attach implements the operation of that name. The name is kept for people; the file is stored under a safe name.
func (o *Handler) Attach(ctx context.Context, by operation.Caller, in operations.NewAttachment) (operations.Attachment, error) {
	row, err := o.Find(ctx, by, in.ID)
	if err != nil {
		return operations.Attachment{}, err
	}
	return o.app.StoreAttachment(ctx, row.ID, cmp.Or(in.Name, in.File.Name), in.File)
}

// StoreAttachment stores a file for a later message of the thread, on whichever machine that arrives.
func (s *Service) StoreAttachment(ctx context.Context, thread chat.ThreadID, name string, file io.Reader) (operations.Attachment, error) {
	data, err := io.ReadAll(io.LimitReader(file, maxAttachment+1))
	switch {
	case err != nil:
		return operations.Attachment{}, operation.InvalidField("", "the upload is incomplete: %v", err)
	case len(data) > maxAttachment:
		return operations.Attachment{}, operation.Errorf(operation.TooLarge, "the file is larger than %d MB", maxAttachment>>20)
	case len(data) == 0:
		return operations.Attachment{}, operation.InvalidField("", "the file is empty")
	}
	dir, err := s.Home.Ensure(s.Setup.Attachments(thread))
	if err != nil {
		return operations.Attachment{}, err
	}
	if count, bytes := Held(dir); count >= MaxStored || bytes+int64(len(data)) > MaxStoredBytes {
		return operations.Attachment{}, operation.Errorf(operation.TooLarge, "this session already has %d files with %d MB; start another one", count, bytes>>20)
	}
	a := operations.Attachment{ID: id.New(), Name: fileName(name), MediaType: Sniff(data), Size: int64(len(data))}
	if err := s.announceAttachment(ctx, thread, a, data); err != nil {
		return operations.Attachment{}, err
	}
	if err := datadir.WriteFile(filepath.Join(dir, a.ID+"-"+a.Name), data, 0o600); err != nil {
		return operations.Attachment{}, err
	}
	return a, nil
}

// attachmentMemo is the kind of memos that describe an attachment until a message refers to it. Its bytes are kept as long.
const attachmentMemo = "attachment"

// attachmentTime is how long an unsent file is kept for all machines.
const attachmentTime = 30 * 24 * time.Hour

// KeepAttached protects the bytes of unsent files from the next sweep.
func KeepAttached(ctx context.Context, db *store.DB) error {
	if err := db.ForgetOlder(ctx, attachmentMemo, attachmentTime); err != nil {
		return err
	}
	memos, err := db.Memos(ctx, attachmentMemo)
	if err != nil {
		return err
	}
	var hashes []string
	for _, m := range memos {
		var a attachmentOf
		if json.Unmarshal(m.Value, &a) == nil && a.Blob != "" {
			hashes = append(hashes, a.Blob)
		}
	}
	return db.RenewBlobs(ctx, hashes)
}

// attachmentOf parses a memo.
type attachmentOf struct {
	Name string `json:"name"`
	Blob string `json:"blob"`
}

func attachmentKey(thread chat.ThreadID, id string) string { return string(thread) + "/" + id }

func (s *Service) announceAttachment(ctx context.Context, thread chat.ThreadID, a operations.Attachment, data []byte) error {
	hash, err := s.DB.PutBlob(ctx, data)
	if err != nil {
		return err
	}
	memo, err := json.Marshal(attachmentOf{a.Name, hash})
	if err != nil {
		return err
	}
	_, err = s.DB.RememberOnce(ctx, attachmentMemo, attachmentKey(thread, a.ID), memo, attachmentTime)
	return err
}

// fetchAttachment stores a file locally that was attached on another machine; false: there is none.
func (s *Service) fetchAttachment(ctx context.Context, thread chat.ThreadID, id string) (name string, data []byte, ok bool, err error) {
	memo, err := s.DB.Recall(ctx, attachmentMemo, attachmentKey(thread, id))
	if err != nil || memo == nil {
		return "", nil, false, err
	}
	var a attachmentOf
	if err := json.Unmarshal(memo, &a); err != nil {
		return "", nil, false, err
	}
	data, err = s.DB.Blob(ctx, a.Blob)
	if errors.Is(err, journal.ErrUnknown) {
		return "", nil, false, nil
	}
	if err != nil {
		return "", nil, false, err
	}
	dir, err := s.Home.Ensure(s.Setup.Attachments(thread))
	if err != nil {
		return "", nil, false, err
	}
	name = id + "-" + fileName(a.Name)
	return name, data, true, datadir.WriteFile(filepath.Join(dir, name), data, 0o600)
}

// Held returns the number and total size of the files in a folder.
func Held(dir string) (count int, bytes int64) {
	list, _ := os.ReadDir(dir) // what cannot be read cannot be written either
	for _, entry := range list {
		if info, err := entry.Info(); err == nil {
			count, bytes = count+1, bytes+info.Size()
		}
	}
	return count, bytes
}

// fileName makes a safe name that is valid on every disk.
func fileName(name string) string {
	name = strings.ReplaceAll(name, `\`, "/")
	name = name[strings.LastIndexByte(name, '/')+1:]
	name = strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._-()", r) {
			return r
		}
		return '_'
	}, strings.ToValidUTF8(name, "_"))
	name = strings.TrimLeft(name, ".-")
	for len(name) > maxFileName {
		_, size := utf8.DecodeRuneInString(name)
		name = name[size:] // the end has the extension
	}
	return cmp.Or(name, "file")
}

// Sniff detects a file's type from its bytes alone.
func Sniff(data []byte) string {
	if media := images.Sniff(data); media != "" {
		return media
	}
	if IsText(data) {
		return "text/plain; charset=utf-8"
	}
	media := http.DetectContentType(data)
	if strings.HasPrefix(media, "text/") {
		return "application/octet-stream" // what looks like a page is treated as text
	}
	return media
}

// IsText reports whether people could read it.
func IsText(data []byte) bool {
	return utf8.Valid(data) && !bytes.ContainsFunc(data, func(r rune) bool {
		return unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t' && r != '\f' && r != '\x1b'
	})
}

// words returns the blocks of a message: its text and its attachments.
func (o *Handler) words(ctx context.Context, row journal.Thread, in operations.SteerMessage, bot *config.Bot) (chat.Blocks, error) {
	text := Clipped(in.Message, bot.MaxMessageChars)
	if strings.TrimSpace(text) == "" && len(in.Attachments) == 0 {
		return nil, operation.InvalidField("message", "the message is empty; say something")
	}
	if len(in.Attachments) > maxAttachments {
		return nil, operation.InvalidField("attachments", "a message can have at most %d files", maxAttachments)
	}
	var blocks chat.Blocks
	if text != "" {
		blocks = append(blocks, chat.Text{Text: text})
	}
	for _, name := range in.Attachments {
		more, err := o.app.Attached(ctx, row.ID, name, bot)
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, more...)
	}
	return blocks, nil
}

// Attached returns a file as a message carries it: a picture as a picture, a text with its contents, anything else with its path.
func (s *Service) Attached(ctx context.Context, thread chat.ThreadID, ref string, bot *config.Bot) (chat.Blocks, error) {
	file, data, err := s.stored(ctx, thread, ref)
	if err != nil {
		return nil, err
	}
	_, name, _ := strings.Cut(file, "-")
	media := Sniff(data)
	if images.Sniff(data) != "" && bot.IncludeImages {
		fitted, media, _, _, err := images.Fit(data, images.Limits{}, runsetup.MaxPixels)
		if err != nil {
			return nil, operation.InvalidField("attachments", "%s: %v", name, err)
		}
		hash, err := s.DB.PutBlob(ctx, fitted)
		if err != nil {
			return nil, err
		}
		return chat.Blocks{chat.Image{Blob: hash, MediaType: media, Name: name, Size: int64(len(fitted))}}, nil
	}
	hash, err := s.DB.PutBlob(ctx, data)
	if err != nil {
		return nil, err
	}
	out := chat.Blocks{chat.File{Name: name, MediaType: media, Path: "@attachments/" + file, Size: int64(len(data)), Blob: hash}}
	if IsText(data) && bot.IncludeTextAttachments && bot.MaxTextAttachmentKB > 0 {
		out = append(out, chat.Text{Text: window.Attachment(name, string(data), bot.MaxTextAttachmentKB<<10)})
	}
	return out, nil
}

// stored reads a file that was attached before.
func (s *Service) stored(ctx context.Context, thread chat.ThreadID, ref string) (name string, data []byte, err error) {
	missing := operation.InvalidField("attachments", "there is no attachment %.80q in this session; upload it first", ref)
	if !settings.PlainID(ref) {
		return "", nil, missing
	}
	dir := s.Setup.Attachments(thread)
	list, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", nil, err
	}
	for _, entry := range list {
		if strings.HasPrefix(entry.Name(), ref+"-") && entry.Type().IsRegular() {
			data, err := os.ReadFile(filepath.Join(dir, entry.Name()))
			return entry.Name(), data, err
		}
	}
	name, data, ok, err := s.fetchAttachment(ctx, thread, ref)
	if err != nil || ok {
		return name, data, err
	}
	return "", nil, missing
}

// Blob implements the operation of that name.
func (o *Handler) Blob(ctx context.Context, by operation.Caller, in operations.BlobRef) (operation.File, error) {
	row, err := o.Find(ctx, by, in.ID)
	if err != nil {
		return operation.File{}, err
	}
	none := operation.Errorf(operation.NotFound, "there is no file %.80q in this session", in.Hash)
	if sum, err := hex.DecodeString(in.Hash); err != nil || len(sum) != 32 {
		return operation.File{}, none
	}
	has, err := o.holdsBlob(ctx, row.ID, in.Hash)
	if err != nil {
		return operation.File{}, err
	}
	if !has {
		return operation.File{}, none
	}
	data, err := o.app.DB.Blob(ctx, in.Hash)
	if err != nil {
		return operation.File{}, err
	}
	return operation.File{ReadCloser: io.NopCloser(bytes.NewReader(data)), MediaType: Sniff(data), Size: int64(len(data)), Hash: in.Hash}, nil
}

// maxForks limits how many nested forks are followed back to where a picture was sent.
const maxForks = 20

// holdsBlob reports whether an event of the thread, or of one that it was forked from, refers to the bytes.
func (o *Handler) holdsBlob(ctx context.Context, thread chat.ThreadID, hash string) (bool, error) {
	for range maxForks {
		has, err := o.app.DB.HasBlob(ctx, thread, hash)
		if has || err != nil {
			return has, err
		}
		made, err := o.Standing(ctx, thread)
		if err != nil || made.Forked == "" {
			return false, err
		}
		thread = made.Forked
	}
	return false, nil
}
