package rest

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func TestStream(t *testing.T) {
	t.Parallel()
	w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	during := []time.Time{}
	head := func(h http.Header) { h.Set("Content-Type", "text/x") }
	err := Stream(w, head, func(out io.Writer) error {
		for range 2 {
			during = append(during, w.writes[len(w.writes)-1]) // while something is made
			if _, err := io.WriteString(out, "piece "); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || w.Body.String() != "piece piece " || !w.Flushed || w.Header().Get("Content-Type") != "text/x" {
		t.Errorf("%v: %q %v", err, w.Body, w.Header())
	}
	if !during[0].IsZero() || !during[1].IsZero() || len(w.reads) != 1 || !w.reads[0].IsZero() {
		t.Errorf("there were deadlines while it was made: %v %v", during, w.reads)
	}
	if last := w.writes[len(w.writes)-1]; time.Until(last) < PieceTimeout/2 {
		t.Errorf("the end may take until %v", last)
	}
	if len(w.writes) != 6 || time.Until(w.writes[1]) < PieceTimeout/2 || !w.writes[2].IsZero() {
		t.Errorf("deadlines %v", w.writes)
	}

	w = &deadlines{ResponseRecorder: httptest.NewRecorder()}
	if err := Stream(w, head, func(io.Writer) error { return nil }); err != nil || w.Header().Get("Content-Type") != "text/x" {
		t.Errorf("nothing at all: %v %v", err, w.Header())
	}
	w = &deadlines{ResponseRecorder: httptest.NewRecorder()}
	if err := Stream(w, head, func(io.Writer) error { return errors.New("no") }); err == nil || len(w.Header()) != 0 {
		t.Errorf("a failure before the first piece: %v %v", err, w.Header())
	}
}
