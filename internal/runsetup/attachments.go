package runsetup

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/datadir"
	"chorus/internal/transcript"
)

// fetchAttachments fetches the files of a session that were attached on other machines, so that its
// tools find them. If a file cannot be fetched, the tools report it as missing.
func (s *Setup) fetchAttachments(ctx context.Context, thread chat.ThreadID, log *transcript.Log) {
	if !s.SharedStore {
		return // all missing files were removed on this machine
	}
	lines, err := log.Lines()
	if err != nil {
		return // whoever renders it reports why
	}
	for _, line := range lines {
		for _, block := range line.Blocks {
			if file, ok := block.(chat.File); ok && file.Blob != "" {
				if err := s.fetchAttachment(ctx, thread, file); err != nil {
					s.Log.Warn("an attachment could not be fetched", "component", "attachments", "event", "attachment_missing", "thread", thread, "error", err)
				}
			}
		}
	}
}

func (s *Setup) fetchAttachment(ctx context.Context, thread chat.ThreadID, file chat.File) error {
	name, ok := strings.CutPrefix(file.Path, "@attachments/")
	if !ok || name == "" || filepath.Base(name) != name {
		return nil
	}
	dir, err := s.Home.Ensure(s.Attachments(thread))
	if err != nil {
		return err
	}
	at := filepath.Join(dir, name)
	if _, err := os.Lstat(at); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	data, err := s.DB.Blob(ctx, file.Blob)
	if err != nil {
		return err
	}
	return datadir.WriteFile(at, data, 0o600)
}
