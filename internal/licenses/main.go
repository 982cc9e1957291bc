// Licenses prints the licences of everything that is compiled into a program: its modules and Go itself. Whoever passes a program on has
// to pass these on with it, so `make release` puts them into every archive.
//
//	GOOS=darwin go run ./internal/licenses ./cmd/chorus
package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"chorus/internal/pattern"
)

// listTime is more than `go list` needs, also with an empty cache.
const listTime = 5 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	out := bufio.NewWriter(os.Stdout)
	err := run(ctx, out, os.Args[1:])
	if err = errors.Join(err, out.Flush()); err != nil {
		fmt.Fprintln(os.Stderr, "licenses:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, packages []string) error {
	if len(packages) == 0 {
		return errors.New("name the packages of the program: licenses ./cmd/chorus")
	}
	modules, err := compiled(ctx, packages)
	if err != nil {
		return err
	}
	return write(out, modules)
}

// module is something that is compiled in.
type module struct {
	name string
	root string
	dirs []string // of the packages that are used, below root
}

// compiled are the modules of which packages are made, and Go's own library, sorted by name.
func compiled(ctx context.Context, packages []string) ([]module, error) {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	const format = "{{if .Standard}}Go\t{{.Root}}\t{{.Dir}}{{else}}{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}\t{{.Dir}}\t{{$.Dir}}{{end}}{{end}}{{end}}"
	cmd := exec.CommandContext(ctx, "go", append([]string{"list", "-deps", "-f", format, "--"}, packages...)...)
	cmd.Stderr = os.Stderr
	listed, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	byName := map[string]*module{}
	for line := range strings.Lines(string(listed)) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		if len(fields) != 3 {
			continue // ours
		}
		m := byName[fields[0]]
		if m == nil {
			m = &module{name: fields[0], root: fields[1]}
			byName[m.name] = m
		}
		m.dirs = append(m.dirs, fields[2])
	}
	var out []module
	for _, m := range byName {
		out = append(out, *m)
	}
	slices.SortFunc(out, func(a, b module) int { return cmp.Compare(a.name, b.name) })
	return out, nil
}

// legal are files that say under which terms something may be passed on.
var legal = pattern.Lazy(`(?i)^(?:[a-z]+-)?(?:licen[cs]es?|copying|copyright|notice|patents)(?:[.-](?:md|txt|mit|bsd|apache|asl2|libyaml)[a-z0-9.]*)?$`)

// write prints what the files of modules say. A module that says nothing is an error: nobody knows whether it may be passed on.
func write(out io.Writer, modules []module) error {
	fmt.Fprintf(out, "Chorus contains work of others, under their licences.\n")
	var silent []string
	for _, m := range modules {
		files, err := m.files()
		if err != nil {
			return err
		}
		if len(files) == 0 {
			silent = append(silent, m.name)
		}
		for _, name := range files {
			data, err := os.ReadFile(filepath.Join(m.root, name))
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "\n%s\n%s: %s\n\n%s\n", strings.Repeat("=", 80), m.name, filepath.ToSlash(name), strings.TrimSpace(string(data)))
		}
	}
	if len(silent) > 0 {
		return fmt.Errorf("no licence was found of %s", strings.Join(silent, ", "))
	}
	return nil
}

// files are those that say under which terms the module, or a used part of it, may be passed on: in its folder, in those of used
// packages and in all between.
func (m module) files() ([]string, error) {
	seen := map[string]bool{}
	var out []string
	for _, dir := range m.dirs {
		rel, err := filepath.Rel(m.root, dir)
		if err != nil || !filepath.IsLocal(rel) {
			return nil, fmt.Errorf("%s is not below %s", dir, m.root)
		}
		for ; !seen[rel]; rel = filepath.Dir(rel) {
			seen[rel] = true
			entries, err := os.ReadDir(filepath.Join(m.root, rel))
			if err != nil {
				return nil, err
			}
			for _, e := range entries {
				if e.Type().IsRegular() && legal().MatchString(e.Name()) {
					out = append(out, filepath.Join(rel, e.Name()))
				}
			}
		}
	}
	slices.Sort(out)
	return out, nil
}
