package runsetup

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"chorus/internal/sandbox"
	"chorus/internal/skill"
)

// copyTime limits how long copying a few megabytes into a container may take.
const copyTime = 60 * time.Second

// skillsInContainer copies a thread's skills into the container of its commands, to the same path as here, so
// that the paths in their texts work there too. It does so at the beginning of each run: the container may be
// a new one, and commands can change its files. A failure only disables the skills' scripts.
func (s *Setup) skillsInContainer(ctx context.Context, b *Toolbox, executor sandbox.Executor) {
	if executor.Name() != "docker" {
		return
	}
	looked, err := s.Skills.View(b.skills)
	if err != nil || len(looked.On) == 0 {
		return
	}
	dir := s.Skills.ViewDir(b.skills)
	var names []string
	for _, one := range looked.On {
		names = append(names, one.Name)
	}
	data, err := archive(dir, names)
	if err == nil {
		var res sandbox.Result
		res, err = executor.Run(ctx, sandbox.Command{Shell: extract(dir), Dir: b.Dir, Stdin: data, Timeout: copyTime, Merge: true})
		if err == nil && res.ExitCode != 0 {
			err = fmt.Errorf("%s", strings.TrimSpace(res.Output))
		}
	}
	if err != nil {
		s.Notices.WarnOnce(fmt.Sprintf("the files of skills could not be copied into the container, so their scripts cannot be run there: %v", err))
	}
}

// extract returns the command that unpacks an archive. It leaves alone an existing folder
// that it did not make, because that is this machine's own, mounted.
func extract(dir string) string {
	at := "'" + strings.ReplaceAll(dir, "'", `'\''`) + "'"
	return fmt.Sprintf("d=%s; if [ -e \"$d\" ] && [ ! -e \"$d/.copied\" ]; then exit 0; fi; rm -rf \"$d\" && mkdir -p \"$d\" && : > \"$d/.copied\" && tar -x -f - -C \"$d\"", at)
}

// archive packs skills of a view.
func archive(dir string, names []string) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, name := range names {
		tree, err := skill.ReadTree(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		for _, e := range tree.Entries {
			h := &tar.Header{Name: path.Join(name, e.Path), Mode: 0o444, Size: e.Size, Typeflag: tar.TypeReg}
			if e.Exec {
				h.Mode = 0o555
			}
			if e.Link != "" {
				h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, e.Link, 0
			}
			if err := w.WriteHeader(h); err != nil {
				return nil, err
			}
			if e.Link != "" {
				continue
			}
			data, err := os.ReadFile(filepath.Join(dir, name, filepath.FromSlash(e.Path)))
			if err != nil {
				return nil, err
			}
			if _, err := w.Write(data); err != nil {
				return nil, err
			}
		}
	}
	err := w.Close()
	return out.Bytes(), err
}
