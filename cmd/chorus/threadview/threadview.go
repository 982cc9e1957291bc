// Package threadview prints the results of operations on threads: searches, replays, steers, stops and forks.
package threadview

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"chorus/internal/chat"
	"chorus/internal/feed"
	"chorus/internal/markdown"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/text"
	"chorus/internal/transport/cli"
)

// Replay prints each request as it arrives, and then a summary. If a request differs it fails with differs.
func Replay(v cli.View, asJSON bool, differs error) (func(operations.ReplayLine) error, func(error) error) {
	last := operations.ReplayEnd{}
	whole := false
	list := &jsonList{w: v.Out}
	each := func(line operations.ReplayLine) error {
		switch {
		case line.End != nil:
			last, whole = *line.End, true
		case line.Request != nil && asJSON:
			return list.add(line.Request)
		case line.Request != nil:
			return replayLine(v.Out, *line.Request)
		}
		return nil
	}
	end := func(err error) error {
		switch {
		case err == nil && !whole:
			err = operation.Errorf(operation.Unavailable, "the replay stopped before the end; try again")
		case err == nil && last.Error != "":
			err = errors.New(last.Error)
		}
		if asJSON && (err == nil || list.begun) { // the output so far is still a complete list
			err = errors.Join(err, list.end())
		}
		if err != nil {
			return err
		}
		if !asJSON {
			_, err = fmt.Fprintf(v.Out, "%d requests, %d differ\n", last.Requests, last.Differ)
		}
		if err == nil && last.Differ > 0 {
			err = differs
		}
		return err
	}
	return each, end
}

func replayLine(w io.Writer, r operations.Replayed) error {
	word := "same"
	if !r.Same {
		word = "DIFFERS " + r.Why
	}
	_, err := fmt.Fprintf(w, "#%d  step %d attempt %d  %-10s  %.12s  %s\n", r.Seq, r.Step, r.Attempt, r.Purpose, r.Digest, word)
	return err
}

// jsonList writes a list as text.WriteIndentedJSON would, without keeping it in memory.
type jsonList struct {
	w     io.Writer
	begun bool
}

func (l *jsonList) add(v any) error {
	var data bytes.Buffer
	if err := text.WriteIndentedJSON(&data, v, "  "); err != nil {
		return err
	}
	before := ",\n  "
	if !l.begun {
		before, l.begun = "[\n  ", true
	}
	_, err := fmt.Fprintf(l.w, "%s%s", before, bytes.TrimRight(data.Bytes(), "\n"))
	return err
}

func (l *jsonList) end() error {
	after := "\n]\n"
	if !l.begun {
		after = "[]\n"
	}
	_, err := io.WriteString(l.w, after)
	return err
}

// hitJSON is a search hit in JSON.
type hitJSON struct {
	SessionID string    `json:"sessionId"`
	Agent     string    `json:"agent"`
	Seq       int64     `json:"seq"`
	At        time.Time `json:"at"`
	Who       string    `json:"who"`
	Snippet   string    `json:"snippet"`
}

// HitsAsJSON converts search hits for scripts, without the highlighting marks.
func HitsAsJSON(_ cli.View, list operation.List[operations.Hit]) any {
	plain := strings.NewReplacer("\x01", "", "\x02", "")
	out := []hitJSON{}
	for _, h := range list.Items {
		out = append(out, hitJSON{h.Session, h.Agent, h.Seq, h.At, h.Who, plain.Replace(h.Snippet)})
	}
	return out
}

// Hits prints search hits.
func Hits(v cli.View, _ operations.SearchQuery, list operation.List[operations.Hit]) error {
	if len(list.Items) == 0 {
		fmt.Fprintln(v.Out, operations.Search.Empty)
	}
	shown := strings.NewReplacer("\x01", "[", "\x02", "]")
	for _, h := range list.Items {
		fmt.Fprintf(v.Out, "%s  #%d  %s  %s\n", h.Session, h.Seq, h.At.Local().Format("2006-01-02 15:04"), h.Who)
		for _, line := range text.WrapWords(cli.ClipLine(shown.Replace(h.Snippet), 200), v.Width-5, markdown.Width) {
			fmt.Fprintf(v.Out, "    %s\n", line)
		}
	}
	return nil
}

// Items prints each object of a stream as a line.
func Items(v cli.View, _ bool) (func(feed.Item) error, func(error) error) {
	each := func(item feed.Item) error {
		data, err := feed.Encode(item)
		if err == nil {
			_, err = fmt.Fprintf(v.Out, "%s\n", data)
		}
		return err
	}
	return each, func(err error) error { return err }
}

// Steered prints what happened to a steer.
func Steered(v cli.View, in operations.SteerMessage, said operations.Said) error {
	text := "sent to the running agent"
	switch {
	case said.AsPrompt && v.Server != "":
		text = "nothing was running there, so it is answered as a prompt"
	case said.AsPrompt:
		text = "nothing is running there, so it waits as a prompt; continue with: chorus run --session-id " + in.ID
	}
	_, err := fmt.Fprintln(v.Out, text)
	return err
}

// Aborted prints whether something was stopped.
func Aborted(v cli.View, _ operations.AbortRequest, done operations.Aborted) error {
	text := "nothing is running there"
	if done.Aborted {
		text = "stopping"
	}
	_, err := fmt.Fprintln(v.Out, text)
	return err
}

// Forked prints how to continue with the fork.
func Forked(v cli.View, _ operations.ForkRequest, made operations.CreatedSession) error {
	fmt.Fprintln(v.Out, made.SessionID)
	switch {
	case v.Server != "":
		fmt.Fprintf(v.Err, "chorus: continue with: chorus chat --server %s --session-id %s\n", v.Server, made.SessionID)
	case chat.ThreadID(made.Session.Thread).Transport() == "cli":
		fmt.Fprintf(v.Err, "chorus: continue with: chorus chat --session-id %s\n", made.SessionID)
	}
	return nil
}
