package agents

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path"

	"chorus/internal/chat"
	"chorus/internal/documents"
)

// pattern matches the documents of agents.
const pattern = "agents/*/" + fileName

func documentOf(name string) string { return path.Join("agents", name, fileName) }

// agentOf returns the agent of a document, or "" if no agent can have that name.
func agentOf(document string) string {
	name := path.Base(path.Dir(document))
	if !chat.ValidAgentName(name) {
		return ""
	}
	return name
}

// Kind describes the files of agents: an agent is removed with its folder, not with its file; it is created
// with a folder; and in homes in which nobody destroyed it, its work goes to the trash.
func (r *Store) Kind() documents.Kind {
	return documents.Kind{
		Patterns: []string{pattern},
		Check: func(document string, body []byte) error {
			name := agentOf(document)
			if name == "" {
				return ErrName
			}
			a, err := parse(r.file(name), body)
			if err != nil {
				return err
			}
			return r.check(&a, name)
		},
		Gone: func(document string) bool { return !exists(r.Home.AgentDir(agentOf(document))) },
		Write: func(ctx context.Context, document string, body []byte) error {
			name := agentOf(document)
			if name == "" {
				return ErrName
			}
			return r.layOutText(ctx, name, body)
		},
		Remove: func(_ context.Context, document string) error {
			name := agentOf(document)
			if _, err := r.moveAway(name, true); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
			return r.forgetFolder(name)
		},
	}
}

// sync updates the agent's file to the one that all homes share. If the file
// has a mistake, whoever reads it next reports that.
func (r *Store) sync(ctx context.Context, name string) error {
	if r.Documents == nil {
		return nil
	}
	err := r.Documents.Sync(ctx, documentOf(name))
	if mistake := (*documents.CheckError)(nil); errors.As(err, &mistake) {
		return nil
	}
	return err
}

func (r *Store) syncAll(ctx context.Context) error {
	if r.Documents == nil {
		return nil
	}
	return r.Documents.SyncMatching(ctx, "agents/", pattern)
}

// rewrite changes an agent's file, here and everywhere. If somebody else
// was quicker, it applies the change to their version.
func (r *Store) rewrite(ctx context.Context, a *Agent, how func(*Agent) error) error {
	if r.Documents == nil {
		if err := how(a); err != nil {
			return err
		}
		return r.writeFile(*a)
	}
	before := *a
	return r.Documents.Change(ctx, documentOf(a.Name), func(text []byte) ([]byte, error) {
		*a = before
		if text != nil {
			now, err := parse(r.file(before.Name), text)
			if err != nil {
				return nil, err
			}
			if err := r.check(&now, before.Name); err != nil {
				return nil, err
			}
			*a = now
		}
		if err := how(a); err != nil {
			return nil, err
		}
		return r.fileText(*a)
	})
}

// share tells other homes about an agent that was just created here. ErrExists
// means that one of that name was created elsewhere meanwhile.
func (r *Store) share(ctx context.Context, made Agent) error {
	if r.Documents == nil {
		return nil
	}
	if err := r.Documents.Sync(ctx, documentOf(made.Name)); err != nil {
		return err
	}
	ours, err := document(made)
	if err != nil {
		return err
	}
	if now, err := os.ReadFile(r.file(made.Name)); err != nil || !bytes.Equal(now, ours) {
		return errors.Join(ErrExists, err)
	}
	return nil
}

func (r *Store) removeDocument(ctx context.Context, name string) error {
	if r.Documents == nil {
		return nil
	}
	return r.Documents.Delete(ctx, documentOf(name))
}

// removed reports whether somebody has destroyed the agent, in any home.
func (r *Store) removed(ctx context.Context, name string) (bool, error) {
	if r.Documents == nil {
		return false, nil
	}
	return r.Documents.Removed(ctx, documentOf(name))
}
