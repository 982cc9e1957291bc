package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/gate"
	"chorus/internal/id"
	"chorus/internal/service/savedcontext"
	"chorus/internal/service/shares"
	"chorus/internal/settings"
	"chorus/internal/store"
)

// EraseDeleted removes the content of sessions that were deleted too long ago to be restored, and returns the number of
// those that are completely removed. What a killed process or an error left unfinished is done the next time: the memo
// of a deletion is removed last.
func (s *Service) EraseDeleted(ctx context.Context, now time.Time) (int, error) {
	memos, err := s.DB.Memos(ctx, deletedMemos)
	if err != nil {
		return 0, err
	}
	erased := 0
	var failed error
	for _, m := range memos {
		var was deletion
		if err := json.Unmarshal(m.Value, &was); err != nil {
			failed = errors.Join(failed, fmt.Errorf("read when %s was deleted: %w", m.Key, err))
			continue
		}
		if now.Before(s.until(was)) {
			continue
		}
		whole, err := s.erase(ctx, chat.ThreadID(m.Key), was)
		if whole {
			erased++
		}
		failed = errors.Join(failed, err) // one failure does not hold up the others
		if ctx.Err() != nil {
			break
		}
	}
	return erased, failed
}

// erase removes everything of a deleted session. It returns false if somebody has restored it or something of it still runs.
func (s *Service) erase(ctx context.Context, thread chat.ThreadID, was deletion) (bool, error) {
	row, err := s.DB.Thread(ctx, thread)
	if err != nil || !row.Gone() {
		return false, err
	}
	if row.Listing == store.Deleted {
		// First the audit line: what follows may be repeated.
		err := s.DB.Audit(ctx, approval.Audit{Agent: row.Agent, Principal: s.Me(), Action: "session erase " + thread.Thread(), Decision: gate.Changed,
			Detail: "deleted by " + was.By + " at " + was.At.Format(time.RFC3339)})
		if err != nil {
			return false, err
		}
	}
	all, err := s.DB.BeginErasing(ctx, thread)
	if err != nil || len(all) == 0 {
		return false, err
	}
	var saved []store.SavedContext
	for _, one := range all {
		row, err := s.DB.Thread(ctx, one)
		if err != nil {
			return false, err
		}
		list, err := s.Contexts.Of(ctx, row)
		if err != nil {
			return false, err
		}
		saved = append(saved, list...)
	}
	if err := s.Settings.TellForgotten(ctx, id.New(), savedcontext.Forgotten(settings.Forgotten{Erased: all}, saved)); err != nil {
		return false, err
	}
	if err := s.Contexts.Remove(ctx, saved); err != nil {
		return false, err
	}
	whole := true
	for _, one := range all {
		if err := s.RemoveFiles(ctx, one); err != nil {
			return false, err
		}
		if err := s.forgetMemos(ctx, one); err != nil {
			return false, err
		}
		done, err := s.DB.Erase(ctx, one)
		if err != nil {
			return false, err
		}
		whole = whole && done
		// Mirror files that were being written meanwhile. From now on nobody starts writing them.
		if err := s.RemoveFiles(ctx, one); err != nil {
			return false, err
		}
	}
	if err := s.Images.Clear(); err != nil {
		return false, fmt.Errorf("remove fetched pictures: %w", err)
	}
	if !whole {
		return false, nil
	}
	return true, s.DB.Forget(ctx, deletedMemos, string(thread))
}

// forgetMemos drops the links to a thread and its attached files that were never sent.
func (s *Service) forgetMemos(ctx context.Context, thread chat.ThreadID) error {
	if err := shares.Forget(ctx, s.DB, thread); err != nil {
		return err
	}
	attached, err := s.DB.Memos(ctx, attachmentMemo)
	if err != nil {
		return err
	}
	for _, m := range attached {
		if !strings.HasPrefix(m.Key, attachmentKey(thread, "")) {
			continue
		}
		if err := s.DB.Forget(ctx, attachmentMemo, m.Key); err != nil {
			return err
		}
		var a attachmentOf
		if json.Unmarshal(m.Value, &a) == nil && a.Blob != "" {
			if err := s.DB.DropBlobs(ctx, []string{a.Blob}); err != nil {
				return err
			}
		}
	}
	return nil
}

// RemoveFiles removes what this home has of an erased thread: attachments, mirrors, long results, and its folder if that
// was created for it alone and nobody else, such as a fork, works there.
func (s *Service) RemoveFiles(ctx context.Context, thread chat.ThreadID) error {
	scratch := s.Home.Scratch(thread)
	others, err := s.DB.WorkIn(ctx, scratch, thread)
	if err != nil {
		return err
	}
	if err := removeAll(s.Home.Outputs(thread)); err != nil {
		return fmt.Errorf("remove the results of %s: %w", thread.Thread(), err)
	}
	dir := s.Home.ThreadDir(thread)
	if !others {
		err = removeAll(dir)
	} else {
		err = removeBeside(dir, scratch)
	}
	if err != nil {
		return fmt.Errorf("remove the files of %s: %w", thread.Thread(), err)
	}
	return nil
}

// removeAll removes a folder, even if a mirror writes its last file into it meanwhile.
func removeAll(dir string) (err error) {
	for range 10 {
		if err = os.RemoveAll(dir); !errors.Is(err, syscall.ENOTEMPTY) {
			return err
		}
	}
	return err
}

// removeBeside removes everything in a folder except one entry.
func removeBeside(dir, keep string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if path := filepath.Join(dir, e.Name()); path != keep {
			err = errors.Join(err, removeAll(path))
		}
	}
	return err
}
