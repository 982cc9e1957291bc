package checks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"chorus/internal/checkpoint"
	"chorus/internal/doctor"
	"chorus/internal/journal"
	"chorus/internal/service"
	"chorus/internal/service/savedcontext"
	"chorus/internal/settings"
	"chorus/internal/store"
	"chorus/internal/store/blobs"
	"chorus/internal/store/documents"
)

// Fix does what can be done without asking. It removes other users' access to the home, makes a lost, damaged
// or rewound database usable again, and removes bytes that nothing refers to, and what killed processes left of saved contexts and in folders.
// It throws nothing away that somebody may still want, but sets it aside. With thorough it also records which
// bytes are lost. It does nothing if the home does not exist. Failures are findings too.
func Fix(ctx context.Context, o Options, thorough bool) []doctor.Finding {
	ctx, cancel := context.WithTimeout(ctx, fixTime)
	defer cancel()
	first := newChecker(ctx, o, Examination{})
	if first.lost != nil || !first.found().there {
		return nil
	}
	var out []doctor.Finding
	h := first.app.Home
	for path, mode := range map[string]fs.FileMode{h.Dir(): 0o700, h.DB(): 0o600, h.DB() + "-wal": 0o600, h.DB() + "-shm": 0o600} {
		out = append(out, closeOff(path, mode)...)
	}
	repaired := first.fixDatabase(ctx)
	out = append(out, repaired...)
	first.close()

	p := newChecker(ctx, o, Examination{}) // checks the present state
	defer p.close()
	if db := p.opened().db; db != nil {
		switch n, err := sweep(ctx, db); {
		case err != nil:
			out = append(out, doctor.Bad("unused bytes", "chorus doctor --fix   again", "%v", err))
		case n > 0:
			out = append(out, doctor.Good("unused bytes", "removed %d that nothing referred to", n))
		}
		out = append(out, p.fixContexts(ctx, db)...)
		if thorough {
			out = append(out, fixBlobs(ctx, db)...)
		}
	}
	out = append(out, p.fixCheckpoints(ctx, len(repaired) > 0)...)
	if n := p.app.Isolation.SweepProxyDirs(); n > 0 {
		out = append(out, doctor.Good("left folders", "removed %d of processes that were killed", n))
	}
	return out
}

// fixContexts removes what is left of contexts whose saving was interrupted, here and on other machines of the database.
func (p *checker) fixContexts(ctx context.Context, db *store.DB) []doctor.Finding {
	at := p.databaseAt()
	reach := &settings.Settings{Env: p.app.Env, Home: p.app.Home}
	reach.UseDocuments(documents.New(db), at.OnServer() || at.Path != p.app.Home.DB())
	contexts := &savedcontext.Contexts{DB: db, Home: p.app.Home, Log: p.app.Log, Settings: reach}
	switch n, err := contexts.Sweep(ctx); {
	case err != nil:
		return []doctor.Finding{doctor.Bad(contextsName, "chorus doctor --fix   again", "%v", err)}
	case n > 0:
		return []doctor.Finding{doctor.Good(contextsName, "removed what was left of %d whose saving was interrupted", n)}
	}
	return nil
}

// fixCheckpoints keeps the head of the audit log. shorter means that the log is known to have lost its end:
// then checkpoints that say otherwise are set aside, and still prove how long the log was.
func (p *checker) fixCheckpoints(ctx context.Context, shorter bool) (out []doctor.Finding) {
	bot, db := p.read().bot, p.opened().db
	if bot == nil || db == nil {
		return nil
	}
	keeper := p.app.Settings.Checkpoints(bot)
	point, err := keeper.Keep(ctx, db)
	if broken, ok := errors.AsType[*checkpoint.Broken](err); ok && shorter {
		aside := keeper.File + "." + time.Now().UTC().Format("20060102T150405")
		if err = os.Rename(keeper.File, aside); err == nil {
			out = append(out, doctor.Good("checkpoint", "%s: those from before are in %s", broken.Text, aside))
			point, err = keeper.Keep(ctx, db)
		}
	}
	switch {
	case err != nil:
		out = append(out, doctor.Bad("checkpoint", "chorus audit verify", "%v", err))
	case point != nil:
		out = append(out, doctor.Good("checkpoint", "%s of the audit log is kept in %s", point.What(), keeper.File))
	}
	return out
}

// Users returns the processes that have the database of a home open, as far as the system tells.
func Users(ctx context.Context, o Options) []string {
	p := newChecker(ctx, o, Examination{})
	if p.lost != nil || !p.found().there {
		return nil
	}
	who, _ := p.users()
	return who
}

// AfterRestore makes a home that came from a backup the valid one. It stops what was running at the
// time of the backup, unless goOn is set: much of it may have been done since.
func AfterRestore(ctx context.Context, o Options, goOn bool) []doctor.Finding {
	p := newChecker(ctx, o, Examination{})
	with := p.databaseAt().Options(p.app.Home)
	with.AcceptRewound = true
	db, err := store.Open(ctx, with)
	if err != nil {
		return unfixed(err)
	}
	var out []doctor.Finding
	if !goOn {
		stopped, err := db.StopWork(ctx, fixer)
		if err != nil {
			return append(unfixed(err), unclosed(db)...)
		}
		if stopped > 0 {
			out = append(out, doctor.Good("runs", "%s", stoppedText(stopped)))
		}
	}
	out = append(out, unclosed(db)...)
	defer p.close()
	return append(out, p.fixCheckpoints(ctx, true)...)
}

func unclosed(db *store.DB) []doctor.Finding {
	if err := db.Close(); err != nil {
		return unfixed(err)
	}
	return nil
}

// fixTime is far longer than a sweep takes.
const fixTime = 10 * time.Minute

// closeOff removes other users' access to an existing file.
func closeOff(path string, mode fs.FileMode) []doctor.Finding {
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	if err := os.Chmod(path, mode); err != nil {
		return []doctor.Finding{doctor.Bad("permissions", fmt.Sprintf("sudo chmod %o %s", mode, Quoted(path)), "%v", err)}
	}
	return []doctor.Finding{doctor.Good("permissions", "%s is now %04o, only for you", path, mode)}
}

// A process that stays around removes unreferenced bytes once a day. It waits for a while after its start,
// so that short sessions do not have to wait for it, and takes some minutes at most.
const (
	SweepFirst = time.Minute
	sweepEvery = 24 * time.Hour
	sweepTime  = 5 * time.Minute
)

// sweptScope and sweptKey are where the store records the last sweep.
const sweptScope, sweptKey = "home", "blobs_swept"

// Sweep sweeps if that is due, and reports it.
func (c *Checks) Sweep(ctx context.Context) {
	switch n, err := c.SweepIfDue(ctx, time.Now()); {
	case err != nil && ctx.Err() == nil:
		c.Log.Warn("unused bytes were not swept: "+err.Error(), "component", "store", "event", "sweep_failed")
	case n > 0:
		c.Log.Info("unused bytes were swept", "component", "store", "event", "blobs_swept", "removed", n)
	}
}

// Daily calls do a while after the start and then every hour, because the machine may have
// slept through a day. do must find out itself whether it is due.
func Daily(ctx context.Context, do func(context.Context)) {
	next := time.NewTimer(SweepFirst)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
		do(ctx)
		next.Reset(time.Hour)
	}
}

// SweepIfDue sweeps unless some process on this home did within the last day. It records that before it
// begins: at worst two processes sweep at the same time, and a failed sweep is retried on the next day.
func (c *Checks) SweepIfDue(ctx context.Context, now time.Time) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, sweepTime)
	defer cancel()
	text, err := c.DB.Setting(ctx, sweptScope, sweptKey)
	if err != nil && !errors.Is(err, journal.ErrUnknown) {
		return 0, err
	}
	if last, err := time.Parse(time.RFC3339, text); err == nil && now.Sub(last) < sweepEvery && !last.After(now) {
		return 0, nil
	}
	if err := c.DB.SetSetting(ctx, sweptScope, sweptKey, now.UTC().Format(time.RFC3339)); err != nil {
		return 0, err
	}
	return sweep(ctx, c.DB)
}

// sweep removes bytes that nothing refers to and that no message is about to.
func sweep(ctx context.Context, db *store.DB) (int, error) {
	if err := service.KeepAttached(ctx, db); err != nil {
		return 0, err
	}
	return db.SweepBlobs(ctx, blobs.SweepAfter)
}
