package rest

import (
	"io"
	"net/http"
	"time"
)

// Stream writes an answer while it is made. Making it may take as long as it likes, but
// whoever reads it must take each piece within PieceTimeout. head sets the headers before the
// first piece: what fails earlier can still be answered by a problem, and what fails
// later cuts the connection (see refuse).
func Stream(w http.ResponseWriter, head func(http.Header), do func(io.Writer) error) error {
	s := &streamed{w: w, head: head, control: http.NewResponseController(w)}
	_ = s.control.SetReadDeadline(time.Time{})  // not every writer has deadlines,
	_ = s.control.SetWriteDeadline(time.Time{}) // and then there are none to lift
	err := do(s)
	if err == nil && !s.begun { // whole, and empty
		_, err = s.Write(nil)
	}
	_ = s.control.SetWriteDeadline(time.Now().Add(PieceTimeout)) // for what is still on its way
	return err
}

// streamed sends each piece at once, and allows time for that alone.
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
		_ = s.control.Flush() // where it cannot be hurried it comes later
	}
	return n, err
}
