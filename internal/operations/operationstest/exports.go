package operationstest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"slices"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/operation"
	"chorus/internal/operations"
)

// secret looks like a key, but opens nothing.
const secret = "ghp_" + "0123456789abcdefghijABCDEFGHIJ012345"

// exports: a session is exported in full, without secrets, and callers without access get an error.
func exports(s *story) {
	made := s.new(s.Ada, operations.NewSession{Title: "a long walk"})
	s.say(s.Ada, made.ID, "!say first\n\n"+secret+" is my key")
	long := strings.Repeat("so it goes ", 20_000)
	s.say(s.Ada, made.ID, "!say "+long+"the end")
	svc := s.As(s.Ada)
	var text strings.Builder
	s.ok(export(s.ctx, svc, s.Ada, operations.ExportRequest{ID: made.ID, Format: operations.Markdown}, &text))
	for _, want := range []string{"# a long walk\n", made.Thread, ", ", "\nfirst\n", long + "the end\n", "[redacted:"} {
		if !strings.Contains(text.String(), want) {
			s.Errorf("the export lacks %.60q", want)
		}
	}
	var lines strings.Builder
	s.ok(export(s.ctx, svc, s.Ada, operations.ExportRequest{ID: made.ID, Format: operations.JSONLines}, &lines))
	if strings.Contains(text.String()+lines.String(), secret) {
		s.Error("an export shows a secret")
	}
	now, err := operations.GetSession.Call(s.ctx, svc, s.Ada, operations.SessionRef{ID: made.ID})
	s.ok(err)
	seq := int64(0)
	for scan := bufio.NewReader(strings.NewReader(lines.String())); ; {
		line, err := scan.ReadBytes('\n')
		if len(line) == 0 {
			break
		}
		s.ok(err)
		var ev chat.Event
		s.ok(json.Unmarshal(line, &ev))
		seq++
		s.equal("number", ev.Seq, seq)
		s.equal("thread", string(ev.Thread), made.Thread)
	}
	s.equal("the last number", seq, now.Seq)
	full := errors.New("the disk is full")
	if err := export(s.ctx, svc, s.Ada, operations.ExportRequest{ID: made.ID, Format: operations.Markdown}, fullDisk{full}); err == nil {
		s.Error("an export that could not be written was called good")
	}
	s.wants(operation.Invalid, export(s.ctx, svc, s.Ada, operations.ExportRequest{ID: made.ID, Format: "pdf"}, &text))
	s.wants(operation.NotFound, export(s.ctx, svc, s.Ada, operations.ExportRequest{ID: "01nowhere", Format: operations.Markdown}, &text))
	s.ok(export(s.ctx, s.As(s.Admin), s.Admin, operations.ExportRequest{ID: made.ID, Format: operations.Markdown}, &text))
}

// export writes a session's export somewhere.
func export(ctx context.Context, to operation.Executor, by operation.Caller, in operations.ExportRequest, w io.Writer) error {
	file, err := operations.Export.Call(ctx, to, by, in)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, file)
	return errors.Join(err, file.Close())
}

type fullDisk struct{ error }

func (f fullDisk) Write([]byte) (int, error) { return 0, f.error }

// replays: every request can be rebuilt, in order, and a reader may leave early.
func replays(s *story) {
	id := s.new(s.Ada, operations.NewSession{Permissions: "standard"}).ID
	svc := s.As(s.Ada)
	for range ReplayedRequests(operations.Replay.Follow(s.ctx, svc, s.Ada, operations.SessionRef{ID: id})) {
		s.Error("a request of a session in which nothing was said")
	}
	s.say(s.Ada, id, "!call list_files {}\n!end\n!say one")
	s.say(s.Ada, id, "!say two")
	last, count := int64(0), 0
	for r, err := range ReplayedRequests(operations.Replay.Follow(s.ctx, svc, s.Ada, operations.SessionRef{ID: id})) {
		s.ok(err)
		if !r.Same || r.Digest == "" || r.Rebuilt != r.Digest || r.Why != "" || r.Seq <= last || r.Run == "" || r.Step == 0 || r.Purpose != chat.ForTurn {
			s.Errorf("after %d: %+v", last, r)
		}
		last = r.Seq
		count++
	}
	s.equal("requests", count, 3)
	for _, err := range ReplayedRequests(operations.Replay.Follow(s.ctx, svc, s.Ada, operations.SessionRef{ID: id})) {
		s.ok(err)
		break
	}
	for _, err := range ReplayedRequests(operations.Replay.Follow(s.ctx, svc, s.Ada, operations.SessionRef{ID: "01nowhere"})) {
		s.wants(operation.NotFound, err)
		count++
	}
	s.equal("told of a session that is not there", count, 4)
}

// ReplayedRequests returns the requests of a replay's lines. A replay without an end is incomplete and returns an error.
func ReplayedRequests(lines iter.Seq2[operations.ReplayLine, error]) iter.Seq2[operations.Replayed, error] {
	return func(yield func(operations.Replayed, error) bool) {
		for line, err := range lines {
			switch {
			case err != nil:
				yield(operations.Replayed{}, err)
				return
			case line.Request != nil:
				if !yield(*line.Request, nil) {
					return
				}
			case line.End != nil && line.End.Error != "":
				kind := operation.Failed // where a newer version has another
				if slices.Contains(operation.Kinds(), line.End.Kind) {
					kind = line.End.Kind
				}
				yield(operations.Replayed{}, &operation.Error{Kind: kind, Message: line.End.Error})
				return
			case line.End != nil:
				return
			}
		}
		yield(operations.Replayed{}, operation.Errorf(operation.Unavailable, "the replay broke off before the end; ask again"))
	}
}
