package pages

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"chorus/internal/operation"
)

// timed is a writer that knows until when its connection is read from.
type timed struct {
	*httptest.ResponseRecorder
	reads time.Time
}

func (t *timed) SetReadDeadline(at time.Time) error { t.reads = at; return nil }
func (t *timed) SetWriteDeadline(time.Time) error   { return nil }

// The server gives a request a minute to arrive, and ends what has not ended by then: a stream lifts that, or its page would come again every minute.
func TestStreamsOutliveTheTimeOfARequest(t *testing.T) {
	t.Parallel()
	w := &timed{httptest.NewRecorder(), time.Now().Add(time.Minute)}
	if s := newPages(t).openStream(w, operation.Caller{}, "1000"); s == nil || w.Code != http.StatusOK {
		t.Fatalf("no stream: %d", w.Code)
	}
	if !w.reads.IsZero() {
		t.Errorf("the stream ends in %s", time.Until(w.reads))
	}
}
