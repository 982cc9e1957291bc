package logging

import (
	"context"
	"slices"
	"sync"

	"chorus/internal/agent/toolcall"
	"chorus/internal/chat"
	"chorus/internal/redact"
	"chorus/internal/tool"
)

// redactors creates a redactor for the current keys and keeps it until they change.
type redactors struct {
	secrets *secrets

	mu    sync.Mutex
	words []string
	more  []string // secrets learnt while the program runs
	made  *redact.Redactor
}

// Remember hides a secret from now on that is neither in the environment
// nor in the configuration, such as a fetched token.
func (l *Logs) Remember(secret string) {
	r := &l.redactors.redactors
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(secret) < leastSecret || slices.Contains(r.more, secret) {
		return
	}
	r.more, r.made = append(r.more, secret), nil
}

// Redactor returns the redactor that removes from texts what the environment and
// the configuration contain, and what looks like a key.
func (l *Logs) Redactor() *redact.Redactor {
	l.redactors.once.Do(func() { l.redactors.redactors.secrets = &secrets{environ: l.Environ} })
	return l.redactors.redactors.of(l)
}

// lazyRedactors is the redactor of Logs, created at first use.
type lazyRedactors struct {
	once      sync.Once
	redactors redactors
}

func (r *redactors) of(a *Logs) *redact.Redactor {
	words := r.secrets.of(a.ConfigFiles())
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.made == nil || !slices.Equal(words, r.words) {
		r.words, r.made = words, redact.New(redact.Options{Known: slices.Concat(redact.FromEnviron(a.Environ), words, r.more)})
	}
	return r.made
}

// Redacting returns the tools with redacted results: what the model, the journal and
// people see of a call. It does not affect what a tool writes to disk.
func (l *Logs) Redacting(tools toolcall.Tools) toolcall.Tools {
	return &redactedTools{tools, l.Redactor}
}

type redactedTools struct {
	tools toolcall.Tools
	now   func() *redact.Redactor
}

var _ toolcall.Tools = (*redactedTools)(nil)

func (r *redactedTools) Resolve(name string, args []byte) (tool.Tool, []byte, error) {
	t, plain, err := r.tools.Resolve(name, args)
	if err != nil {
		return nil, nil, err
	}
	wrapped := redactedTool{t, r.now}
	if p, ok := t.(tool.Previewer); ok {
		return &redactedPreviewer{wrapped, p}, plain, nil
	}
	return &wrapped, plain, nil
}

func (r *redactedTools) Validate(t tool.Tool, args []byte) error {
	if w, ok := t.(interface{ unwrap() tool.Tool }); ok {
		t = w.unwrap()
	}
	return r.tools.Validate(t, args)
}

// redactedTool is a tool whose output is redacted before anybody gets it.
type redactedTool struct {
	tool.Tool
	now func() *redact.Redactor
}

var _ tool.Tool = (*redactedTool)(nil)

func (t *redactedTool) unwrap() tool.Tool { return t.Tool }

func (t *redactedTool) Run(ctx context.Context, args []byte) (tool.Result, error) {
	r := t.now()
	call := tool.CallFrom(ctx)
	tell := call.Progress
	call.Progress = func(text string) { tell(r.Text(text)) }
	res, err := t.Tool.Run(tool.WithCall(ctx, call), args)
	blocks := make(chat.Blocks, len(res.Blocks))
	for i, b := range res.Blocks {
		if text, ok := b.(chat.Text); ok {
			text.Text = r.Text(text.Text)
			b = text
		}
		blocks[i] = b
	}
	res.Blocks, res.UntrustedFrom, res.Diff = blocks, r.Text(res.UntrustedFrom), r.Text(res.Diff)
	if err != nil {
		err = &redactedError{err, r.Text(err.Error())}
	}
	return res, err
}

// redactedPreviewer is a redactedTool that can say in advance what it would change.
type redactedPreviewer struct {
	redactedTool
	previewer tool.Previewer
}

var _ tool.Previewer = (*redactedPreviewer)(nil)

func (t *redactedPreviewer) Preview(ctx context.Context, args []byte) string {
	return t.now().Text(t.previewer.Preview(ctx, args))
}

// redactedError is an error with a different text.
type redactedError struct {
	error
	text string
}

func (e *redactedError) Error() string { return e.text }

func (e *redactedError) Unwrap() error { return e.error }

// RedactingKeep returns a tool.Keep for outputs that are too long for a result. They stay
// in the home as long as the thread does, so they are redacted too.
func (l *Logs) RedactingKeep(keep tool.Keep) tool.Keep {
	return func(ctx context.Context, call, text string) (string, error) {
		return keep(ctx, call, l.Redactor().Text(text))
	}
}
