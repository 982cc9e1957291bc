package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"chorus/internal/atomicfile"

	"github.com/goccy/go-yaml"
)

// document writes the file.
func (f *converted) document() ([]byte, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "# Taken over from %s's %s.\n", f.program, f.name)
	for _, text := range f.comments {
		fmt.Fprintf(&b, "# %s\n", strings.ReplaceAll(text, "\n", " "))
	}
	var tree yaml.MapSlice
	for _, l := range f.leaves {
		if l.value.form != isObject {
			tree = grow(tree, strings.Split(l.path, "."), l.value.plain())
		} else {
			tree = grow(tree, strings.Split(l.path, "."), yaml.MapSlice{})
		}
	}
	if len(tree) > 0 {
		body, err := yaml.MarshalWithOptions(tree, yaml.Indent(2), yaml.IndentSequence(true), yaml.UseLiteralStyleIfMultiline(true))
		if err != nil {
			return nil, err
		}
		b.WriteString("\n")
		b.Write(body)
	}
	return []byte(b.String()), f.verify(b.String())
}

// verify reads back what was written: every value must be the same.
func (f *converted) verify(text string) error {
	r := &report{}
	var back merged
	back.lay(shape(r, layerOf(f.target), nil, parse(r, f.target, layerOf(f.target), []byte(text))))
	if err := r.found.Err(); err != nil {
		return err
	}
	for _, l := range f.leaves {
		got := back.get(l.path)
		if got == nil || l.key != nil && fmt.Sprint(got.value.plain()) != fmt.Sprint(l.value.plain()) {
			return fmt.Errorf("%s does not survive being written", shownPath(l.path))
		}
	}
	return nil
}

func grow(tree yaml.MapSlice, path []string, value any) yaml.MapSlice {
	name := unescape(path[0])
	i := slices.IndexFunc(tree, func(item yaml.MapItem) bool { return item.Key == name })
	if i < 0 {
		i, tree = len(tree), append(tree, yaml.MapItem{Key: name})
	}
	if len(path) == 1 {
		if _, entry := value.(yaml.MapSlice); !entry || tree[i].Value == nil { // an entry never clears what is in it
			tree[i].Value = value
		}
		return tree
	}
	below, _ := tree[i].Value.(yaml.MapSlice)
	tree[i].Value = grow(below, path[1:], value)
	return tree
}

// write puts everything in place, or reports what prevents that before it changes anything.
func (c *takeover) write() error {
	var names, blocked []string
	for name := range c.out {
		names = append(names, name)
	}
	slices.Sort(names)
	same := map[string]bool{}
	for _, name := range names {
		old, err := os.ReadFile(filepath.Join(c.o.To, name))
		switch {
		case err == nil && string(old) == string(c.out[name].data):
			same[name] = true
		case err == nil && !c.o.Force:
			blocked = append(blocked, filepath.Join(c.o.To, name))
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("import: %w", err)
		}
	}
	for _, name := range names {
		action := "written"
		if same[name] {
			action = "same"
		}
		c.taken = append(c.taken, Taken{From: c.out[name].from, To: name, Action: action})
	}
	if c.o.DryRun {
		return nil
	}
	if len(blocked) > 0 {
		return fmt.Errorf("these files are there already and differ; --force overwrites them: %s", strings.Join(blocked, ", "))
	}
	for _, name := range names {
		if same[name] {
			continue
		}
		path := filepath.Join(c.o.To, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return fmt.Errorf("import: %w", err)
		}
		if err := atomicfile.Write(path, c.out[name].data, c.out[name].perm); err != nil {
			return fmt.Errorf("import: %w", err)
		}
	}
	return nil
}
