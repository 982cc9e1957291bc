package checks

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"chorus/internal/approval"
	"chorus/internal/backup"
	"chorus/internal/blobstorage"
	"chorus/internal/checkpoint"
	"chorus/internal/database"
	"chorus/internal/doctor"
	"chorus/internal/provider"
	"chorus/internal/runsetup"
	"chorus/internal/service"
	"chorus/internal/service/savedcontext"
	"chorus/internal/settings"
	"chorus/internal/store"
	"chorus/internal/store/blobs"
	"chorus/internal/text"
)

func (p *checker) database(context.Context) []doctor.Finding {
	if p.app.Home != nil {
		cutOff, err := backup.FindUnfinished(p.app.Home.Dir())
		if err == nil && cutOff != nil {
			err = cutOff
		}
		if err != nil {
			return []doctor.Finding{doctor.Bad("restore", "chorus restore --replace FILE", "%v", err)}
		}
	}
	s := p.opened()
	if p.databaseAt().OnServer() {
		return p.databaseServer(s)
	}
	path := p.databasePath()
	switch {
	case errors.Is(s.err, errNoHome):
		return []doctor.Finding{doctor.Noted("file", "", "not checked: %v", s.err)}
	case s.err != nil:
		return []doctor.Finding{doctor.Bad("file", databaseFix(path, s.err), "%v", s.err)}
	case !s.Exists:
		return []doctor.Finding{doctor.Good("file", "none yet; it will be created on first use")}
	}
	out := []doctor.Finding{doctor.Good("file", "%s, %s", path, bytesWords(s.Size))}
	if s.Mode&0o077 != 0 {
		out = append(out, doctor.Warning("permissions", "chmod 600 "+Quoted(path), "%04o: other users of this machine can read it", s.Mode))
	}
	if s.Older() {
		out = append(out, doctor.Warning("schema", "chorus migrate", "version %d, this program's is %d; the next start brings it up to date", s.Version, s.Known))
	} else {
		out = append(out, doctor.Good("schema", "version %d, the newest", s.Version))
	}
	if s.Journal == "wal" {
		return append(out, doctor.Good("journal mode", "wal"))
	}
	return append(out, doctor.Warning("journal mode", "put the home on a local disk: WAL does not work on every network file system",
		"%s instead of wal: readers and writers wait for each other", s.Journal))
}

// databaseServer is like database, for one on a server.
func (p *checker) databaseServer(s openedStore) []doctor.Finding {
	at := p.databaseAt()
	switch {
	case errors.Is(s.err, errNoHome):
		return []doctor.Finding{doctor.Noted("server", "", "not checked: %v", s.err)}
	case s.err != nil:
		return []doctor.Finding{doctor.Bad("server", "see that the server runs (pg_isready), and databaseUrl in the configuration", "%v", s.err)}
	case s.Server == "":
		return []doctor.Finding{doctor.Good("server", "%s; it will be prepared on first use", at)}
	case !s.Exists:
		return []doctor.Finding{doctor.Good("server", "%s, %s; it is empty and will be prepared on first use", at, s.Server)}
	}
	out := []doctor.Finding{doctor.Good("server", "%s, %s, %s", at, s.Server, bytesWords(s.Size))}
	if s.Older() {
		out = append(out, doctor.Warning("schema", "chorus migrate", "version %d, this program's is %d; the next start brings it up to date", s.Version, s.Known))
	} else {
		out = append(out, doctor.Good("schema", "version %d, the newest", s.Version))
	}
	return append(out, sharedSecrets(p.app.Env))
}

// sharedSecrets checks whether all nodes have the same secrets.
func sharedSecrets(env func(string) string) doctor.Finding {
	const make = "openssl rand -hex 32   and give it to every node as " + settings.SecretsKey + ", or in a file that " + settings.SecretsKey + "_FILE names"
	switch seal, err := settings.SecretsSeal(env); {
	case err != nil:
		return doctor.Bad("secrets", make, "%v", err)
	case seal == nil:
		return doctor.Noted("secrets", make, "they stay on this node: config/secrets, logins to MCP servers, the owner's token and the key of checkpoints")
	}
	return doctor.Good("secrets", "encrypted in the database, for all nodes with this key")
}

// databaseFix returns a command that helps.
func databaseFix(path string, err error) string {
	switch {
	case errors.Is(err, database.ErrNewer):
		return "upgrade chorus, or use another home: export CHORUS_HOME=~/.chorus-old"
	case errors.Is(err, database.ErrDamaged):
		return "chorus restore FILE   with a backup, or save what can be read: chorus doctor --fix"
	case errors.Is(err, database.ErrMissing):
		return "chorus restore FILE   with a backup, or begin anew and keep what is left: chorus doctor --fix"
	case errors.Is(err, database.ErrRewound):
		return "put the newest one back, or accept this one: chorus doctor --fix"
	case errors.Is(err, database.ErrDisk):
		return "dmesg | tail   and df -h " + Quoted(path)
	case errors.Is(err, database.ErrForeign):
		return fmt.Sprintf("mv %s %s", Quoted(path), Quoted(path+".foreign"))
	case errors.Is(err, database.ErrDenied):
		return "chmod u+rw " + Quoted(path)
	case errors.Is(err, database.ErrBusy):
		return "fuser -v " + Quoted(path)
	case errors.Is(err, database.ErrFull):
		return "df -h " + Quoted(path)
	default:
		return "chorus doctor   again; if the error remains, restore a backup"
	}
}

// sound reads the whole file, as far as time allows.
func (p *checker) sound(ctx context.Context) []doctor.Finding {
	s := p.opened()
	if !s.Exists || p.databaseAt().OnServer() || s.err != nil && !errors.Is(s.err, database.ErrNewer) {
		return nil // already reported, or the server's business
	}
	ctx, cancel := hurry(ctx)
	defer cancel()
	began := time.Now()
	switch err := database.CheckFile(ctx, p.databasePath()); {
	case err == nil:
		return []doctor.Finding{doctor.Good("pages", "all sound")}
	case errors.Is(err, context.DeadlineExceeded):
		return []doctor.Finding{doctor.Noted("pages", "chorus doctor --thorough", "%s are too much to read in %s; no damage found so far",
			bytesWords(s.Size), time.Since(began).Round(time.Second))}
	default:
		return []doctor.Finding{doctor.Bad("pages", databaseFix(p.databasePath(), err), "%v", err)}
	}
}

// hurry returns a context that ends a little before the check does,
// so that the check can say how far it came.
func hurry(ctx context.Context) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, end.Add(-300*time.Millisecond))
}

// attachments checks whether the bytes that conversations refer to still exist.
func (p *checker) attachments(ctx context.Context) []doctor.Finding {
	const name = "files"
	if p.opened().db == nil {
		return nil
	}
	ctx, cancel := hurry(ctx)
	defer cancel()
	faults, n, err := p.opened().db.CheckBlobs(ctx, p.Thorough)
	switch {
	case len(faults) > 0:
		return []doctor.Finding{doctor.Bad(name, "restore blobs from a backup, or record the loss: chorus doctor --thorough --fix", "%s", lostBytes(faults))}
	case ctx.Err() != nil:
		return []doctor.Finding{doctor.Noted(name, "chorus doctor --thorough", "the first %d that conversations refer to exist; there was no time for more", n)}
	case err != nil:
		return []doctor.Finding{doctor.Warning(name, "chorus doctor --thorough", "%v", err)}
	case n == 0:
		return []doctor.Finding{doctor.Good(name, "none")}
	case p.Thorough:
		return []doctor.Finding{doctor.Good(name, "%s that conversations refer to, all as they were", text.Count(n, "piece"))}
	default:
		return []doctor.Finding{doctor.Good(name, "%s that conversations refer to exist; --thorough reads them", text.Count(n, "piece"))}
	}
}

// lostBytes says what is lost, with a few examples.
func lostBytes(faults []blobs.BlobFault) string {
	const examples = 3
	var said []string
	for _, f := range faults[:min(len(faults), examples)] {
		said = append(said, fmt.Sprintf("%.12s… of %s (%s) is %s", f.Hash, f.Thread, bytesWords(f.Bytes), f.What))
	}
	if more := len(faults) - examples; more > 0 {
		said = append(said, fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("%s of conversations cannot be read any more: %s", text.Count(len(faults), "attachment or long result"), strings.Join(said, "; "))
}

func (p *checker) blobs(ctx context.Context) []doctor.Finding {
	if p.opened().db == nil {
		return nil
	}
	unused, err := p.opened().db.UnusedBlobs(ctx, blobs.SweepAfter)
	switch {
	case ctx.Err() != nil:
		return []doctor.Finding{doctor.Noted("unused bytes", "chorus doctor --thorough", "there was no time to count them")}
	case err != nil:
		return []doctor.Finding{doctor.Warning("unused bytes", "chorus doctor --thorough", "%v", err)}
	case unused.Count == 0:
		return []doctor.Finding{doctor.Good("unused bytes", "none")}
	default:
		return []doctor.Finding{doctor.Noted("unused bytes", "chorus doctor --fix", "%s in %s that nothing refers to; a long session removes them once a day",
			bytesWords(unused.Bytes), text.Count(unused.Count, "piece"))}
	}
}

const contextsName = "saved contexts"

// contexts reports what is left of contexts whose saving was interrupted.
func (p *checker) contexts(ctx context.Context) []doctor.Finding {
	db := p.opened().db
	if db == nil {
		return nil
	}
	n, err := db.CountLeftContexts(ctx, db.Now().Add(-savedcontext.LeftAfter))
	switch {
	case err != nil:
		return []doctor.Finding{doctor.Warning(contextsName, "chorus doctor --thorough", "%v", err)}
	case n == 0:
		return nil
	default:
		return []doctor.Finding{doctor.Noted(contextsName, "chorus doctor --fix", "parts of %d are left whose saving was interrupted; a long session removes them once an hour", n)}
	}
}

// storageTime is how long a remote or busy storage may take.
const storageTime = 20 * time.Second

// storage checks whether attachments can be written, read, listed and removed where blobUrl says.
func (p *checker) storage(ctx context.Context) []doctor.Finding {
	const name = "attachments"
	at := p.databaseAt()
	if at.Blobs == nil {
		return nil
	}
	ctx, cancel := hurry(ctx)
	defer cancel()
	err := at.Blobs.Check(ctx)
	if closed := at.Blobs.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return []doctor.Finding{doctor.Bad(name, "see that the storage is there, and blobUrl in the configuration", "%v", err)}
	}
	out := []doctor.Finding{doctor.Good(name, "%s: written, read, listed and removed", at.Blobs.Name())}
	if db := p.opened().db; db != nil {
		switch others, err := db.BlobsOfOthers(ctx); {
		case err != nil:
			out = append(out, doctor.Warning(name, "chorus doctor", "%v", err))
		case others:
			out = append(out, doctor.Warning(name, "give each database a prefix of its own in blobUrl; if the other one is gone, remove "+blobstorage.OwnerFile+" there, and the next sweep makes it this one's",
				"%s belongs to another database, so nothing is ever removed from it", at.Blobs.Name()))
		}
	}
	return out
}

func (p *checker) audit(ctx context.Context) []doctor.Finding {
	return p.withStore("chain", func(db *store.DB) []doctor.Finding {
		ctx, cancel := hurry(ctx)
		defer cancel()
		var done, all int64
		found, err := db.VerifyAudit(ctx, "", func(d, a int64) { done, all = d, a })
		switch {
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			return []doctor.Finding{doctor.Noted("chain", "chorus audit verify", "the first %d of %d lines are as written; there was no time for more", done, all)}
		case err != nil:
			return []doctor.Finding{doctor.Bad("chain", "chorus audit verify", "%v", err)}
		case found.Break != nil:
			return []doctor.Finding{doctor.Bad("chain", "chorus audit verify   and find out who may write to the home", "%s: %s", found.Break.What, found.Break.Text)}
		case found.Lines == 0:
			return []doctor.Finding{doctor.Good("chain", "empty"), p.checkpoints(ctx, db)}
		default:
			return []doctor.Finding{doctor.Good("chain", "%s, all as written", text.Count(int(found.Lines), "line")), p.checkpoints(ctx, db)}
		}
	})
}

// within reports whether a file is below a directory.
func within(file, dir string) bool {
	rel, err := filepath.Rel(dir, file)
	return err == nil && filepath.IsLocal(rel)
}

// checkpoints checks whether the log agrees with the heads that were kept elsewhere.
func (p *checker) checkpoints(ctx context.Context, db *store.DB) doctor.Finding {
	const name = "checkpoint"
	bot := p.read().bot
	if bot == nil {
		return doctor.Noted(name, "", "not checked: %s", unread(p.read().err))
	}
	keeper := p.app.Settings.Checkpoints(bot)
	newest, err := keeper.Check(ctx, db)
	var broken *checkpoint.Broken
	switch {
	case errors.As(err, &broken):
		return doctor.Bad(name, "find out who may write to the home; after restoring a backup, move "+Quoted(keeper.File)+" away", "%s", broken.Text)
	case err != nil:
		return doctor.Warning(name, "chorus audit verify", "%v", err)
	case keeper.File == "":
		return doctor.Noted(name, "set audit.checkpointFile", "none is kept: a log whose end was cut off would not be noticed")
	case newest == nil:
		return doctor.Noted(name, "chorus audit verify", "none yet; a server, a chat or `chorus audit verify` keeps one in %s", keeper.File)
	case within(keeper.File, p.app.Home.Dir()):
		return doctor.Noted(name, "set audit.checkpointFile, audit.checkpointUrl or audit.checkpointGit", "%s of %s is in the home, %s: whoever cuts the log off can change it too",
			newest.What(), newest.At.Local().Format("2006-01-02 15:04"), keeper.File)
	default:
		return doctor.Good(name, "%s of %s, in %s", newest.What(), newest.At.Local().Format("2006-01-02 15:04"), keeper.File)
	}
}

func (p *checker) approvals(ctx context.Context) []doctor.Finding {
	return p.withStore("waiting", func(db *store.DB) []doctor.Finding {
		open, err := db.Approvals(ctx, store.ApprovalFilter{State: approval.Open})
		if err != nil {
			return []doctor.Finding{doctor.Bad("waiting", "chorus approvals list", "%v", err)}
		}
		if len(open) == 0 {
			return []doctor.Finding{doctor.Good("waiting", "none")}
		}
		oldest := open[0].AskedAt
		for _, a := range open {
			if a.AskedAt.Before(oldest) {
				oldest = a.AskedAt
			}
		}
		return []doctor.Finding{doctor.Noted("waiting", "chorus approvals list", "%s not answered, the oldest is %s", text.Count(len(open), "approval"), provider.Age(oldest, time.Now()))}
	})
}

// unread says why something in the configuration is not known.
func unread(err error) string {
	if errors.Is(err, errNoHome) {
		return err.Error()
	}
	return "the configuration is broken"
}

func (p *checker) budgets(ctx context.Context) []doctor.Finding {
	bot := p.read().bot
	if bot == nil {
		return []doctor.Finding{doctor.Noted("limits", "", "not checked: %s", unread(p.read().err))}
	}
	budget := runsetup.BudgetOf(bot, false)
	if len(budget.Ceilings) == 0 && len(p.read().files.Bots()) == 0 {
		return []doctor.Finding{doctor.Good("limits", "none; `budgets` of shared.yaml sets some")}
	}
	db := p.opened().db
	if db == nil {
		return []doctor.Finding{doctor.Good("limits", "%s for everybody, nothing spent yet", text.Count(len(budget.Ceilings), "ceiling"))}
	}
	from := p.app.Settings
	configured := &settings.Settings{Env: from.Env, Home: from.Home, Warn: from.Warn, Logs: from.Logs, Live: settings.NewLiveConfig(p.read().files)}
	spending := &service.Service{DB: db, Settings: configured}
	used, err := spending.BudgetsUsed(ctx, time.Now())
	if err != nil {
		return []doctor.Finding{doctor.Bad("limits", "chorus cost", "%v", err)}
	}
	var out []doctor.Finding
	for _, b := range used {
		name := strings.TrimSpace(b.Key + " " + b.Subject)
		detail := fmt.Sprintf("%s of %s spent", text.Dollars(b.Spent+b.Reserved), text.Dollars(b.Most))
		if b.Left <= 0 {
			out = append(out, doctor.Warning(name, "chorus cost   and raise it in shared.yaml if that is right", "%s: nothing more is paid until the %s is over", detail, b.Period))
		} else {
			out = append(out, doctor.Good(name, "%s", detail))
		}
	}
	if len(out) == 0 {
		out = append(out, doctor.Good("limits", "none"))
	}
	return out
}
