package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"chorus/internal/datadir"
	"chorus/internal/skill"
	"chorus/internal/skill/approved"
	"chorus/internal/tool/files"
	"chorus/internal/trust"
)

const (
	// barSkills is what a look at skills that have not changed may take: it comes before every request.
	barSkills = 1.0 // ms
	// benchSkills have ten files each.
	benchSkills = 20
)

// skillRows measure a look at 200 files of approved skills when nothing has changed.
func skillRows(dir string, q float64) ([]row, error) {
	home, err := datadir.Open(filepath.Join(dir, "skills-home"))
	if err != nil {
		return nil, err
	}
	library := &approved.Library{Home: home, Lock: trust.Store{File: filepath.Join(home.Dir(), "trusted.json"), Texts: filepath.Join(home.Dir(), "trusted")}, Diff: files.UnifiedWhole, Now: time.Now}
	where := skill.Where{Global: home.Dir()}
	for i := range benchSkills {
		name := fmt.Sprintf("skill-%d", i)
		folder := filepath.Join(home.Skills(), name)
		err := os.MkdirAll(filepath.Join(folder, "references"), 0o755)
		for j := range 9 {
			err = errors.Join(err, os.WriteFile(filepath.Join(folder, "references", fmt.Sprint(j, ".md")), []byte(strings.Repeat("text ", 400)), 0o644))
		}
		err = errors.Join(err, os.WriteFile(filepath.Join(folder, skill.File), []byte("---\nname: "+name+"\ndescription: does it\n---\nDo it.\n"), 0o644))
		if err != nil {
			return nil, err
		}
	}
	list, _ := library.Find(where)
	for _, s := range list {
		if err := library.Approve(s, s.Tree.Digest, "bench"); err != nil {
			return nil, err
		}
	}
	library.Now = func() time.Time { return time.Now().Add(time.Hour) } // what was just written would be read again
	looked, err := library.View(where)
	if err != nil || len(looked.On) != benchSkills {
		return nil, errors.Join(err, fmt.Errorf("%d skills are on, not %d", len(looked.On), benchSkills))
	}
	ms := timed(q, func() { _, err = library.View(where) }, 10, rounds)
	return []row{{what: "look at 200 files of skills, nothing changed", unit: "ms", chorus: ms, value: ms, bar: barSkills, how: "%.2f ms"}}, err
}
