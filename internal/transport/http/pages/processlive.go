package pages

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"chorus/internal/markdown"
	"chorus/internal/operation"
	"chorus/internal/operations"
)

// Timing of a process's stream.
const (
	outputEvery = 250 * time.Millisecond // how often it checks for output: the keeper writes to a file and notifies nobody
	factsEvery  = 2 * time.Second        // and for what its hooks did
	partialLine = time.Second            // an incomplete line is shown after this time
	lingers     = 3 * time.Second        // actions of hooks at its end follow within this time
)

// output is a piece of what a process printed.
type output struct {
	Text string `json:"text"`
	Lost bool   `json:"lost,omitempty"` // earlier output is no longer available
}

// processLive streams the output of a process from a position on, and its status. It ends with the process. The id of an
// event is the position to continue from, so a page that reconnects misses nothing and gets nothing twice.
func (p *Pages) processLive(w http.ResponseWriter, r *http.Request) {
	by, ok := operation.CallerOf(r.Context())
	if !ok {
		http.Error(w, "sign in first", http.StatusUnauthorized)
		return
	}
	one, err := operations.GetProcess.Call(r.Context(), p.Executor, by, operations.ProcessRef{ID: r.PathValue("id")})
	if err != nil {
		http.Error(w, p.userMessage(err), statusOf(err))
		return
	}
	from, _ := strconv.ParseInt(cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("from")), 10, 64)
	st := p.openStream(w, by, "1000")
	if st == nil {
		return
	}
	s := &processStream{stream: st, id: one.ID, from: max(from, 1)}
	if err := s.run(r.Context()); err != nil && r.Context().Err() == nil {
		p.Log.Debug("page stream ended", "component", "web", "error", err)
	}
}

// processStream is the connection of one page to one process.
type processStream struct {
	*stream
	id     string
	from   int64             // the position to read on from
	total  int64             // bytes of output at the last check
	grown  time.Time         // when there was new output
	ended  time.Time         // when the end of the process was noticed; zero: it runs
	facts  time.Time         // when they were last read
	shown  map[string]string // the fragments sent last
	finish bool              // everything was sent
}

func (s *processStream) run(ctx context.Context) error {
	look := time.NewTicker(outputEvery)
	defer look.Stop()
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		err := s.look(ctx)
		if err != nil {
			return err
		}
		if s.finish {
			return s.send("event: end\ndata: over\n\n")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.pages.Stopping:
			return s.send(": the server is stopping; come again\n\n")
		case <-beat.C:
			err = s.beat(ctx)
		case <-look.C:
		}
		if err != nil {
			return err
		}
	}
}

// look sends what is new.
func (s *processStream) look(ctx context.Context) error {
	for {
		now := s.pages.Now()
		out, err := s.read(ctx, true)
		if err != nil {
			return err
		}
		if out.Total != s.total {
			s.total, s.grown = out.Total, now
		}
		if out.Text == "" && s.total >= s.from && now.Sub(s.grown) >= partialLine {
			if out, err = s.read(ctx, false); err != nil {
				return err
			}
		}
		if over := !running(out.Status); over && s.ended.IsZero() {
			s.ended, s.facts = now, time.Time{}
		}
		if out.Text == "" {
			break
		}
		data, err := json.Marshal(output{Text: markdown.Clean(out.Text), Lost: out.From > s.from})
		if err != nil {
			return err
		}
		s.from = out.Next
		if err := s.send(fmt.Sprintf("id: %d\nevent: output\ndata: %s\n\n", s.from, data)); err != nil {
			return err
		}
	}
	now := s.pages.Now()
	s.finish = !s.ended.IsZero() && now.Sub(s.ended) >= lingers
	if s.facts.IsZero() || s.finish || now.Sub(s.facts) >= factsEvery {
		s.facts = now
		return s.sendFacts(ctx)
	}
	return nil
}

func (s *processStream) read(ctx context.Context, whole bool) (operations.ProcessOutput, error) {
	return operations.ProcessLogs.Call(ctx, s.pages.Executor, s.by, operations.ProcessLogQuery{ID: s.id, From: s.from, Bytes: tailBytes, Whole: whole})
}

// sendFacts sends the state of the process and the actions of its hooks, if they changed.
func (s *processStream) sendFacts(ctx context.Context) error {
	one, err := operations.GetProcess.Call(ctx, s.pages.Executor, s.by, operations.ProcessRef{ID: s.id})
	if err != nil {
		return err
	}
	if s.shown == nil {
		s.shown = map[string]string{}
	}
	for _, name := range []string{"process-facts", "process-hooks"} {
		html, err := s.pages.fragment(name, processData(one, s.by))
		if err != nil {
			return err
		}
		if s.shown[name] == html {
			continue
		}
		s.shown[name] = html
		if err := s.put(fragment{ID: name, HTML: html}); err != nil {
			return err
		}
	}
	return nil
}
