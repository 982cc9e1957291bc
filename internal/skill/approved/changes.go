package approved

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"chorus/internal/skill"
	"chorus/internal/trust"
)

// shownText is the longest file whose difference is shown line by line.
const shownText = 256 << 10

// Changes returns how a skill differs from what was approved. For a
// skill that was never approved, that is all of it.
func (l *Library) Changes(s Skill) ([]trust.Change, error) {
	if s.Wrong != "" {
		return nil, fmt.Errorf("%w: %s", ErrBroken, s.Wrong)
	}
	before := filepath.Join(l.copies(), s.Record.Digest)
	var old skill.Tree
	if s.Record.Digest != "" {
		tree, err := skill.ReadTree(before)
		if err == nil && tree.Digest == s.Record.Digest {
			old = tree
		}
	}
	was, is := map[string]skill.Entry{}, map[string]skill.Entry{}
	var names []string
	for _, e := range old.Entries {
		was[e.Path] = e
		names = append(names, e.Path)
	}
	for _, e := range s.Tree.Entries {
		is[e.Path] = e
		names = append(names, e.Path)
	}
	slices.Sort(names)
	var out []trust.Change
	for _, name := range slices.Compact(names) {
		a, b := was[name], is[name]
		if a == b {
			continue
		}
		change, err := l.changeOf(name, was[name], is[name], before, s.Dir)
		if err != nil {
			return nil, err
		}
		out = append(out, change)
	}
	return out, nil
}

func (l *Library) changeOf(name string, was, is skill.Entry, before, now string) (trust.Change, error) {
	c := trust.Change{Path: name, How: "changed"}
	switch {
	case was.Path == "":
		c.How = "is new"
	case is.Path == "":
		c.How = "is gone"
	case is.Exec && !was.Exec:
		c.How = "changed and is executable now"
	case was.Exec && !is.Exec:
		c.How = "changed and is no longer executable"
	}
	if was.Path == "" && is.Exec {
		c.How = "is new and executable"
	}
	if is.Link != "" || was.Link != "" {
		c.How += fmt.Sprintf(": a link to %q", is.Link)
		return c, nil
	}
	old, readable, err := textOf(before, was)
	if err != nil {
		return c, err
	}
	text, also, err := textOf(now, is)
	if err != nil {
		return c, err
	}
	if !readable || !also {
		c.How += fmt.Sprintf("; it cannot be shown as text: %d bytes, sha256 %s", is.Size, is.Sum)
		return c, nil
	}
	c.Diff = Visible(l.Diff(name, old, text))
	return c, nil
}

// textOf returns a file as text, or false if it cannot be shown.
func textOf(dir string, e skill.Entry) (string, bool, error) {
	if e.Path == "" {
		return "", true, nil
	}
	if e.Size > shownText {
		return "", false, nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", false, err
	}
	defer func() { _ = root.Close() }()
	data, err := readAll(root, e)
	if err != nil {
		return "", false, err
	}
	return string(data), utf8.Valid(data) && !bytes.ContainsRune(data, 0), nil
}

// Visible spells out characters that would be invisible, or would change how others
// appear: what somebody approves must be what a model reads.
func Visible(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Zl, r), unicode.Is(unicode.Zp, r), unicode.Is(unicode.Co, r), r == utf8.RuneError,
			unicode.Is(unicode.Variation_Selector, r), r == 0x3164, r == 0x115f, r == 0x1160, r == 0xffa0:
			fmt.Fprintf(&b, "<U+%04X>", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
