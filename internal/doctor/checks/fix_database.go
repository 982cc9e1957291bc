package checks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/doctor"
	"chorus/internal/store"
	"chorus/internal/text"
)

// fixDatabase makes a lost, damaged or rewound database usable again, and says what
// that cost. Everything it removes is kept in a folder of the home.
func (p *checker) fixDatabase(ctx context.Context) []doctor.Finding {
	if p.databaseAt().OnServer() {
		return nil // whoever runs the server has its backups
	}
	s := p.opened()
	err := s.err
	if err == nil && s.Exists {
		err = database.CheckFile(ctx, p.databasePath())
	}
	p.close() // it may be moved
	kind := ""
	switch {
	case errors.Is(err, database.ErrMissing):
		kind = "lost"
	case errors.Is(err, database.ErrRewound):
		kind = "older"
	case errors.Is(err, database.ErrDamaged):
		kind = "damaged"
	default:
		return nil // intact, or nothing can be done without asking
	}
	if who, _ := p.users(); len(who) > 0 {
		return []doctor.Finding{doctor.Bad("database", "stop it, then chorus doctor --fix   again", "it is %s, and in use by %s", kind, strings.Join(who, ", "))}
	}
	path := p.databasePath()
	switch kind {
	case "lost":
		return fixLost(ctx, path, p.app.Home.Blobs())
	case "older":
		return p.acceptRewound(ctx, path, err)
	default:
		return p.salvage(ctx, path)
	}
}

// unfixed reports a repair that failed.
func unfixed(err error) []doctor.Finding {
	return []doctor.Finding{doctor.Bad("database", "chorus restore FILE   with a backup", "%v", err)}
}

// fixLost restores a database that was saved, or sets aside what is left of it.
func fixLost(ctx context.Context, path, blobs string) []doctor.Finding {
	from, err := database.PutBack(ctx, path)
	if err != nil {
		return unfixed(err)
	}
	if from != "" {
		return []doctor.Finding{doctor.Good("database", "put back from %s; nothing is lost", from)}
	}
	left := store.Leftovers(path, blobs)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) { // empty, if it exists
		return unfixed(err)
	}
	folder, err := database.SetAside(path, "lost", time.Now(), blobs)
	if err != nil {
		return unfixed(err)
	}
	return []doctor.Finding{doctor.Good("database", "it was gone: every conversation in it is lost unless you have a backup (chorus restore FILE). What was left, %s, is in %s; the next start creates a new one",
		strings.Join(left, ", "), folder)}
}

// acceptRewound makes an older database the valid one, and stops what looks unfinished in it.
func (p *checker) acceptRewound(ctx context.Context, path string, why error) []doctor.Finding {
	stopped, err := p.stopWork(ctx, path)
	if err != nil {
		return unfixed(err)
	}
	return []doctor.Finding{doctor.Good("database", "accepted as it is: %s. What was said and done after that is lost; %s", causeOf(why), stopped)}
}

var fixer = chat.Principal{Kind: chat.TheSystem, ID: "doctor"}

// causeOf returns what is wrong, without what could be done about it.
func causeOf(err error) string {
	if p, ok := errors.AsType[*database.Problem](err); ok && p.Cause != nil {
		return p.Cause.Error()
	}
	return err.Error()
}

// stopWork opens an older database, stops what looks unfinished in it, and reports that.
func (p *checker) stopWork(ctx context.Context, path string) (said string, err error) {
	db, err := store.Open(ctx, store.Options{Path: path, BlobDir: p.app.Home.Blobs(), AcceptRewound: true})
	if err != nil {
		return "", err
	}
	defer db.Close()
	threads, err := db.StopWork(ctx, fixer)
	return stoppedText(threads), err
}

func stoppedText(threads int) string {
	if threads == 0 {
		return "nothing was running"
	}
	return fmt.Sprintf("what was running in %s is stopped, so that nothing is done twice", text.Count(threads, "conversation"))
}

// salvage saves what can be read of a damaged database.
func (p *checker) salvage(ctx context.Context, path string) []doctor.Finding {
	got, err := store.Salvage(ctx, path, time.Now())
	if err != nil {
		return unfixed(err)
	}
	stopped, err := p.stopWork(ctx, path)
	if err != nil {
		return unfixed(err)
	}
	cut := "every conversation is whole"
	if n := len(got.Cut); n > 0 {
		cut = fmt.Sprintf("%s end earlier now (%s)", text.Count(n, "conversation"), firstOf(got.Cut, 5))
	}
	return []doctor.Finding{doctor.Good("database", "saved what could be read: %d events and %d lines of the audit log; %s; damaged was %s; %s. The damaged files are in %s",
		got.Events, got.Audit, cut, firstOf(got.Damaged, 10), stopped, got.Folder)}
}

// firstOf lists the first of many.
func firstOf(list []string, most int) string {
	if len(list) == 0 {
		return "no table"
	}
	said := strings.Join(list[:min(len(list), most)], ", ")
	if more := len(list) - most; more > 0 {
		said += fmt.Sprintf(" and %d more", more)
	}
	return said
}

// fixBlobs records which bytes are lost, so that conversations continue without them.
func fixBlobs(ctx context.Context, db *store.DB) []doctor.Finding {
	faults, _, err := db.CheckBlobs(ctx, true)
	if err != nil {
		return []doctor.Finding{doctor.Bad("files", "chorus doctor --thorough --fix   again", "%v", err)}
	}
	if len(faults) == 0 {
		return nil
	}
	folder, err := db.AcceptLostBlobs(ctx, faults)
	if err != nil {
		return []doctor.Finding{doctor.Bad("files", "chorus doctor --thorough --fix   again", "%v", err)}
	}
	out := lostBytes(faults) + "; taken note of, conversations go on without them"
	if folder != "" {
		out += ". Wrong bytes are in " + folder
	}
	return []doctor.Finding{doctor.Good("files", "%s", out)}
}
