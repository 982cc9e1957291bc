package checks

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"

	"chorus/internal/doctor"
	"chorus/internal/text"
)

// keptMuch is how much the homes of commands may contain before somebody is told: build caches grow, and
// nothing else looks after them. maxKept is how many files are counted before doctor says that there are
// more.
const (
	keptMuch = 5 << 30
	maxKept  = 500_000
)

// keptHomes reports how much is in the homes that sandboxed commands keep.
func (p *checker) keptHomes(ctx context.Context) []doctor.Finding {
	if p.lost != nil {
		return nil
	}
	homes, _ := filepath.Glob(filepath.Join(p.app.Home.Dir(), "walls", "*", "*"))
	return judgeHomes(weighHomes(ctx, homes, maxKept), keptMuch)
}

// weighed is what was found in the homes.
type weighed struct {
	homes   int
	bytes   int64
	largest string
	most    int64 // size of the largest
	cut     bool  // there is more than was counted
}

// weighHomes adds up the files, until there are many or ctx ends.
func weighHomes(ctx context.Context, homes []string, many int) weighed {
	w := weighed{homes: len(homes)}
	for _, home := range homes {
		var own int64
		_ = filepath.WalkDir(home, func(_ string, entry fs.DirEntry, err error) error {
			if many--; many < 0 || ctx.Err() != nil {
				w.cut = true
				return filepath.SkipAll
			}
			if err != nil || entry.IsDir() {
				return nil // what we may not read is not ours to count
			}
			if info, err := entry.Info(); err == nil && info.Mode()&os.ModeType == 0 {
				own += info.Size()
			}
			return nil
		})
		w.bytes += own
		if own > w.most || w.largest == "" {
			w.largest, w.most = home, own
		}
	}
	return w
}

func judgeHomes(w weighed, limit int64) []doctor.Finding {
	atLeast := ""
	if w.cut {
		atLeast = "at least "
	}
	switch {
	case w.homes == 0:
		return nil
	case w.bytes > limit:
		// Module caches are written so that nobody can change them.
		fix := "chmod -R u+w " + Quoted(w.largest) + " && rm -r " + Quoted(w.largest)
		return []doctor.Finding{doctor.Warning("kept homes", fix, "%s%s in %s of commands; the largest, %s, is refilled by the commands that need it",
			atLeast, bytesWords(w.bytes), text.Count(w.homes, "home"), bytesWords(w.most))}
	}
	return []doctor.Finding{doctor.Good("kept homes", "%s%s in %s of commands", atLeast, bytesWords(w.bytes), text.Count(w.homes, "home"))}
}
