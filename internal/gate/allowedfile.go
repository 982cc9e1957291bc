package gate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"chorus/internal/config"
	"chorus/internal/documents"
	"chorus/internal/notice"
	"chorus/internal/permit"
	"chorus/internal/permit/always"
	"chorus/internal/settings"
	"chorus/internal/usage"
)

// allowedFile caches the file of what people have allowed for good. The file is checked
// before each answer, so all processes on a home agree. If the file is broken, the last
// good version applies; if there was none, nothing is allowed.
type allowedFile struct {
	mu     sync.Mutex
	good   *always.Rules
	data   []byte // the file contents that good was parsed from
	broken string // the last reported error of the current file
}

// now returns the rules in force and any error in the current file. fresh reports whether the error is new.
func (k *allowedFile) now(path string) (rules *always.Rules, mistake error, fresh bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		data, err = nil, nil
	}
	if err == nil && k.good != nil && bytes.Equal(data, k.data) {
		k.broken = ""
		return k.good, nil, false
	}
	var read *always.Rules
	if err == nil {
		read, err = always.Parse(data)
	}
	if err != nil {
		fresh = k.broken != err.Error()
		k.broken = err.Error()
		if k.good == nil {
			none, _ := always.New(nil) // an empty list cannot fail
			return none, fmt.Errorf("%s: %w", path, err), fresh
		}
		return k.good, fmt.Errorf("%s: %w", path, err), fresh
	}
	k.good, k.data, k.broken = read, data, ""
	return read, nil, false
}

// AllowedFile returns the path of the file of rules that people keep by answering "always".
func (g *Gate) AllowedFile() string { return filepath.Join(g.Home.Dir(), allowedName) }

// AllowedRules returns the kept rules. It reports an error in the file to whoever is there.
func (g *Gate) AllowedRules() *always.Rules {
	rules, mistake, fresh := g.allowed.now(g.AllowedFile())
	if fresh {
		holds := fmt.Sprintf("the %d from before stay in force", len(rules.List()))
		if len(rules.List()) == 0 {
			holds = "none is in force, and you will be asked"
		}
		g.warnPeople("the kept rules cannot be read, so " + holds + ": " + mistake.Error())
	}
	return rules
}

// warnPeople shows a warning to whoever is there and logs it.
func (g *Gate) warnPeople(text string) {
	g.Log.Warn(text, "component", "permissions")
	if !g.Notices.Post(notice.Notice{Text: text, Bad: true}) {
		g.Warn(text)
	}
}

// allowedName is the name of the document of what is allowed for good; the file is a copy of it.
const allowedName = "allowed.yaml"

// AllowedDocument is the document kind of what people have allowed for good.
func AllowedDocument() documents.Kind {
	return documents.Kind{Patterns: []string{allowedName}, Check: func(_ string, body []byte) error {
		_, err := always.Parse(body)
		return err
	}}
}

// changeAllowed changes the rules, one process at a time. It does not overwrite a file with
// an error: somebody edited it by hand and will want to see the error.
func (g *Gate) changeAllowed(ctx context.Context, change func([]always.Entry) ([]always.Entry, error)) error {
	err := g.Settings.Copies().Change(ctx, allowedName, func(text []byte) ([]byte, error) {
		rules, err := always.Parse(text)
		if err != nil {
			return nil, &documents.CheckError{Path: g.AllowedFile(), Err: err}
		}
		list, err := change(rules.List())
		if err != nil {
			return nil, err
		}
		changed, err := always.New(list)
		if err != nil {
			return nil, err
		}
		return changed.Encode()
	})
	if mistake, ok := errors.AsType[*documents.CheckError](err); ok {
		return fmt.Errorf("nothing was changed, because the file has an error: %s: %w; fix it, or remove it to start over", mistake.Path, mistake.Err)
	}
	return err
}

// lastRules holds the last good profiles, by bot and name.
type lastRules struct {
	mu   sync.Mutex
	good map[[2]string]*permit.Profile
}

// Rules loads a profile. If its file was valid before and is broken now, the
// last good version stays in force and a warning says so.
func (g *Gate) Rules(bot *config.Bot, name string) (*permit.Profile, error) {
	last := &g.lastRules
	key := [2]string{bot.Name, name}
	p, err := settings.Profile(bot, name)
	last.mu.Lock()
	defer last.mu.Unlock()
	if err == nil {
		if last.good == nil {
			last.good = map[[2]string]*permit.Profile{}
		}
		last.good[key] = p
		return p, nil
	}
	before, ok := last.good[key]
	if !ok {
		return nil, err
	}
	g.Notices.WarnOnce("the permission rules cannot be used, so the previous version stays in force: " + err.Error())
	return before, nil
}

// ListAllowed lists the kept rules, oldest first. A broken file is an error.
func (g *Gate) ListAllowed() ([]always.Entry, error) {
	rules, mistake, _ := g.allowed.now(g.AllowedFile())
	if mistake != nil {
		return nil, mistake
	}
	return rules.List(), nil
}

// RemoveAllowed removes the entries with these ids. If one id is unknown, it removes none.
func (g *Gate) RemoveAllowed(ctx context.Context, ids []string) ([]always.Entry, error) {
	var gone []always.Entry
	err := g.changeAllowed(ctx, func(list []always.Entry) ([]always.Entry, error) {
		gone = nil
		for _, id := range ids {
			at := slices.IndexFunc(list, func(k always.Entry) bool { return k.ID == id })
			if at < 0 {
				return nil, usage.Wrap(fmt.Errorf("nothing is kept under %q; `chorus permit allowed list` shows what is", id))
			}
			gone = append(gone, list[at])
			list = slices.Delete(list, at, at+1)
		}
		return list, nil
	})
	if err != nil {
		return nil, err
	}
	for _, k := range gone {
		if err := g.recordChange(ctx, k.Agent, "permit allowed remove", Shortened(keptDetail(k))); err != nil {
			return gone, err
		}
	}
	return gone, nil
}
