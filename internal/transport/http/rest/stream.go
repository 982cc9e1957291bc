package rest

import (
	"io"
	"net/http"
	"time"
)

// Stream writes an answer while it is produced. Producing it may take any time, but the reader must accept each piece
// within PieceTimeout. head sets the headers before the first piece: an earlier failure can still be answered by a
// problem, a later one cuts the connection (see refuse).
func Stream(w http.ResponseWriter, head func(http.Header), do func(io.Writer) error) error {
	s := &streamed{w: w, head: head, control: http.NewResponseController(w)}
	_ = s.control.SetReadDeadline(time.Time{})  // not every writer has deadlines to lift
	_ = s.control.SetWriteDeadline(time.Time{}) // and then there are none to lift
	err := do(s)
	if err == nil && !s.begun { // whole, and empty
		_, err = s.Write(nil)
	}
	_ = s.control.SetWriteDeadline(time.Now().Add(PieceTimeout)) // for what is still being sent
	return err
}

// streamed sends each piece at once, with its own time limit.
type streamed struct {
	w       http.ResponseWriter
	head    func(http.Header)
	control *http.ResponseController
	begun   bool
}

func (s *streamed) Write(data []byte) (int, error) {
	if !s.begun {
		s.begun = true
		s.head(s.w.Header())
	}
	_ = s.control.SetWriteDeadline(time.Now().Add(PieceTimeout))
	defer func() { _ = s.control.SetWriteDeadline(time.Time{}) }()
	n, err := s.w.Write(data)
	if err == nil {
		_ = s.control.Flush() // without flushing it arrives later
	}
	return n, err
}
