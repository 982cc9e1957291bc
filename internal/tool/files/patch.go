package files

import (
	"context"
	"fmt"
	"io/fs"
	"strings"

	"chorus/internal/tool"
)

type patchIn struct {
	Patch string `json:"patch" jsonschema:"the patch"`
}

// ApplyPatch returns the apply_patch tool.
func ApplyPatch(r *Roots) tool.Tool {
	return tool.New(tool.Func[patchIn]{
		Name: "apply_patch", Description: patchProse, Risk: tool.Medium,
		Aliases: []tool.Alias{tool.Also("ApplyPatch")},
		Access:  func(in patchIn) []tool.Access { return r.patchAccess(in.Patch) },
		Label:   func(in patchIn) string { return r.patchLabel(in.Patch) },
		Preview: func(ctx context.Context, in patchIn) string { return r.patchPreview(ctx, in.Patch) },
		Run: func(ctx context.Context, in patchIn) (tool.Result, error) {
			res, err := r.patch(ctx, in.Patch)
			if err != nil {
				return failQuoting(err)
			}
			return res, nil
		},
	})
}

// failQuoting returns the answer of a failed call that quotes lines of files as the reason.
func failQuoting(err error) (tool.Result, error) {
	res, err := tool.Answer(err)
	res.UntrustedFrom = "lines of files"
	return res, err
}

// paths returns all the paths that a patch touches, in its order.
func paths(sections []section) []string {
	var out []string
	for _, s := range sections {
		out = append(out, s.path)
		if s.moveTo != "" {
			out = append(out, s.moveTo)
		}
	}
	return out
}

func (r *Roots) patchAccess(text string) []tool.Access {
	sections, err := parsePatch(text)
	if err != nil {
		return nil
	}
	var all []tool.Access
	seen := map[string]bool{}
	names := paths(sections)
	for _, name := range names {
		touched := r.WriteAccess("apply_patch", name, names...)
		if touched == nil {
			return nil
		}
		if !seen[touched[0].Detail] {
			seen[touched[0].Detail] = true
			all = append(all, touched...)
		}
	}
	return all
}

func (r *Roots) patchLabel(text string) string {
	var names []string
	for _, a := range r.patchAccess(text) {
		names = append(names, a.Detail)
	}
	if len(names) > 3 {
		return fmt.Sprintf("patch %s and %d more", strings.Join(names[:3], ", "), len(names)-3)
	}
	return "patch " + strings.Join(names, ", ")
}

// file is one file of a plan, before and after.
type file struct {
	draft
	present bool
	content string
	perm    fs.FileMode // 0: unchanged
}

func (f *file) changed() bool {
	return f.present != f.exists || f.present && (f.content != f.old || f.perm != 0 && f.perm != f.mode)
}

// plan is everything a patch does, computed before anything is written.
type plan struct {
	roots *Roots
	files map[string]*file // by key
	order []*file
	notes []string // what was done, for the answer
}

func (r *Roots) newPlan(ctx context.Context, sections []section) (*plan, error) {
	p := &plan{roots: r, files: map[string]*file{}}
	names := paths(sections)
	others := r.resolvedAll(names)
	for _, name := range names {
		place, err := r.Find(name)
		if err != nil {
			return nil, err
		}
		d, err := r.judgedTarget(ctx, "apply_patch", place, others...)
		if err != nil {
			return nil, err
		}
		if p.files[d.key] == nil {
			f := &file{draft: d}
			p.files[d.key] = f
			p.order = append(p.order, f)
		}
	}
	return p, nil
}

func (p *plan) keys() []string {
	keys := make([]string, len(p.order))
	for i, f := range p.order {
		keys[i] = f.key
	}
	return keys
}

// compute loads the files and applies every section in memory.
func (p *plan) compute(ctx context.Context, sections []section) error {
	for _, f := range p.order {
		d, err := p.roots.load(f.draft)
		if err != nil {
			return err
		}
		if err := p.roots.mayShow(ctx, d); err != nil {
			return err
		}
		f.draft, f.present, f.content = d, d.exists, d.old
	}
	for _, s := range sections {
		if err := p.section(s); err != nil {
			return err
		}
	}
	return nil
}

// at returns the file of a path that newPlan has seen.
func (p *plan) at(name string) (*file, error) {
	place, err := p.roots.Find(name)
	if err != nil {
		return nil, err
	}
	d, err := p.roots.target(place)
	if err != nil {
		return nil, err
	}
	if f := p.files[d.key]; f != nil {
		return f, nil
	}
	return nil, tool.Mistake(place.String() + " changed while the patch was applied; try again.")
}

func (p *plan) section(s section) error {
	f, err := p.at(s.path)
	if err != nil {
		return err
	}
	name := f.place.String()
	if s.kind == add {
		if f.present {
			return tool.Mistake(name + " exists already, it cannot be added.")
		}
		f.present, f.content, f.perm = true, s.content, fs.FileMode(s.mode)
		p.notes = append(p.notes, "A "+name)
		return nil
	}
	if !f.present {
		return tool.Mistake(name + " does not exist.")
	}
	if (s.kind == remove || s.moveTo != "") && p.roots.isLink(f.place) {
		return tool.Mistake(name + " is a link: name the file it leads to.")
	}
	content, err := apply(f.content, s.hunks)
	if err != nil {
		return tool.Mistake(name + ", " + err.Error() + ". Nothing was changed.")
	}
	if s.kind == remove {
		if len(s.hunks) > 0 && content != "" {
			return tool.Mistake(name + " holds more than the patch deletes. Nothing was changed.")
		}
		f.present, f.content = false, ""
		p.notes = append(p.notes, "D "+name)
		return nil
	}
	return p.move(s, f, content)
}

// move finishes an update, under another name if the section says so.
func (p *plan) move(s section, f *file, content string) error {
	name := f.place.String()
	mode := f.mode
	if f.perm != 0 {
		mode = f.perm
	}
	if s.mode != 0 {
		mode = fs.FileMode(s.mode)
	}
	if s.moveTo == "" {
		f.content, f.perm = content, mode
		p.notes = append(p.notes, "M "+name)
		return nil
	}
	to, err := p.at(s.moveTo)
	if err != nil {
		return err
	}
	if to != f && to.present {
		return tool.Mistake(to.place.String() + " exists already, nothing can be moved there.")
	}
	f.present, f.content = false, ""
	to.present, to.content, to.perm = true, content, mode
	p.notes = append(p.notes, "R "+name+" -> "+to.place.String())
	return nil
}

func (r *Roots) patchPreview(ctx context.Context, text string) string {
	sections, err := parsePatch(text)
	if err != nil {
		return ""
	}
	p, err := r.newPlan(ctx, sections)
	if err != nil || p.compute(ctx, sections) != nil {
		return ""
	}
	var out strings.Builder
	for _, f := range p.order {
		out.WriteString(diff(f.draft, f.place.String(), f.content, f.present))
	}
	return tool.Clip(ctx, out.String(), tool.Head, nil)
}

func (r *Roots) patch(ctx context.Context, text string) (tool.Result, error) {
	sections, err := parsePatch(text)
	if err != nil {
		return tool.Result{}, err
	}
	p, err := r.newPlan(ctx, sections)
	if err != nil {
		return tool.Result{}, err
	}
	release, err := r.locks.acquire(ctx, r.who, p.keys()...)
	if err != nil {
		return tool.Result{}, err
	}
	defer release()
	if err := p.compute(ctx, sections); err != nil {
		return tool.Result{}, err
	}
	if err := ctx.Err(); err != nil {
		return tool.Result{}, err
	}
	for _, f := range p.order {
		if !f.changed() {
			continue
		}
		content := f.content
		if !f.present {
			content = ""
		}
		if err := r.beforeSave(ctx, "apply_patch", f.draft, content); err != nil {
			return tool.Result{}, err
		}
	}
	if err := p.commit(); err != nil {
		return tool.Result{}, err
	}
	out := "Applied the patch:\n" + strings.Join(p.notes, "\n")
	var changed []string
	var diffs strings.Builder
	for _, f := range p.order {
		if f.changed() {
			changed = append(changed, f.place.String())
			diffs.WriteString(diff(f.draft, f.place.String(), f.content, f.present))
		}
		if f.present {
			out += warning(f.place, f.content)
		}
	}
	res := tool.OK(tool.Clip(ctx, out, tool.Head, nil))
	res.Changed, res.Diff = changed, tool.Clip(ctx, diffs.String(), tool.Head, nil)
	return res, nil
}
