package runsetup

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/journal"
	"chorus/internal/model"
	"chorus/internal/tool"
	"chorus/internal/transcript"
)

// newHead builds the beginning of a prompt: the system prompt and the tools. It records the files
// that it quotes, so that a later run can tell whether only these have changed.
func newHead(d PromptData, specs []tool.Spec) (*model.Head, error) {
	head := &model.Head{System: RenderPrompt(d)}
	for _, s := range specs {
		head.Tools = append(head.Tools, model.ToolSpec{Name: s.Name, Description: s.Description, Schema: s.Schema})
	}
	bare := d
	bare.Identity, bare.Docs, bare.Instructions = "", nil, Document{}
	data, err := (&model.Head{System: RenderPrompt(bare), Tools: head.Tools}).Bytes()
	if err != nil {
		return nil, err
	}
	head.Base = chat.NewBlob(data).Hash
	for _, doc := range d.documents() {
		if head.Documents == nil {
			head.Documents = map[string]string{}
		}
		head.Documents[doc.Name] = chat.NewBlob([]byte(doc.Text)).Hash
	}
	return head, nil
}

// kept returns the head that a run begins with. It reuses the head of the window's earlier requests
// if only quoted files have changed, the model is the same and nothing was cut. The provider's
// cache then still applies, and a note tells the model what changed.
func (s *Setup) kept(log *transcript.Log, name string, fresh *model.Head) *model.Head {
	hash := log.Head(name)
	if hash == "" {
		return fresh
	}
	before, err := s.Head(hash)
	if err != nil || before.Base == "" || before.Base != fresh.Base {
		return fresh
	}
	return before
}

// documents returns the files that a prompt quotes, named as in notes.
func (d PromptData) documents() []Document {
	var out []Document
	if d.Identity != "" {
		out = append(out, Document{"IDENTITY.md", d.Identity})
	}
	for _, doc := range d.Docs {
		out = append(out, Document{"@docs/" + doc.Name, doc.Text})
	}
	if d.Instructions.Text != "" {
		out = append(out, d.Instructions)
	}
	return out
}

// quoted returns the files that a prompt of the thread would quote now.
func (s *Setup) quoted(ctx context.Context, row journal.Thread, bot *config.Bot, b *Toolbox, tools bool, withholds func(path string, link bool) bool) []Document {
	who, err := s.persona(ctx, row.Agent, bot)
	if err != nil {
		return nil
	}
	d := PromptData{Identity: who.identity, Docs: who.docs}
	if tools {
		d.Instructions = Instructions(ctx, b.Roots, withholds)
	}
	return d.documents()
}

// changedFiles tells a conversation which of the quoted files have changed since its
// beginning. It rereads them only if one of them was touched.
func (s *Setup) changedFiles(quoted func(context.Context) []Document, touched func() string) NoteSource {
	var mu sync.Mutex
	var stamp string
	var now []Document
	return NoteSource{What: "changed instructions", Gone: "The files are the same as when this conversation began.", Text: func(ctx context.Context, at NoteContext) (string, error) {
		if at.Head == nil || at.Head.Base == "" {
			return "", nil
		}
		mu.Lock()
		defer mu.Unlock()
		if t := touched(); t != stamp {
			now, stamp = quoted(ctx), t
		}
		return changedSince(at.Head.Documents, now), nil
	}}
}

// changedSince describes the files whose texts differ from those that the conversation began with.
func changedSince(before map[string]string, now []Document) string {
	left := maps.Clone(before)
	var out strings.Builder
	for _, doc := range now {
		was, had := left[doc.Name]
		delete(left, doc.Name)
		switch {
		case had && was == chat.NewBlob([]byte(doc.Text)).Hash:
		case doc.Name == "AGENTS.md" || doc.Name == "CLAUDE.md":
			fmt.Fprintf(&out, "\n<repository-instructions file=%q>\n%s\n</repository-instructions>\n", doc.Name, doc.Text)
		default:
			fmt.Fprintf(&out, "\n<doc name=%q>\n%s\n</doc>\n", doc.Name, doc.Text)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		fmt.Fprintf(&out, "\n%s is gone; its contents no longer apply.\n", name)
	}
	if out.Len() == 0 {
		return ""
	}
	return "These files have changed since this conversation began; the versions below apply.\n" + out.String()
}

// touchedFiles returns a value that changes whenever one of the files is written,
// created or removed. A folder stands for the Markdown files below it.
func touchedFiles(paths ...string) string {
	var out strings.Builder
	for _, path := range paths {
		_ = filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || name != path && !strings.HasSuffix(name, ".md") {
				return nil
			}
			if info, err := os.Stat(name); err == nil {
				fmt.Fprintf(&out, "%s %d %d\n", name, info.Size(), info.ModTime().UnixNano())
			}
			return nil
		})
	}
	return out.String()
}
