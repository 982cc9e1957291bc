package repl

import (
	"io"
	"strconv"
	"strings"
)

// screen prints permanent lines above a few that are redrawn: a spinner, the
// unfinished line of an answer. Without a terminal it prints only permanent lines.
type screen struct {
	live io.Writer // nil: nothing is redrawn
	rows int       // number of redrawn lines on the terminal
	err  error     // the first write error, reported at the end
}

// print writes permanent lines to w.
func (s *screen) print(w io.Writer, lines ...string) {
	if len(lines) == 0 {
		return
	}
	s.clear()
	s.write(w, strings.Join(lines, "\n")+"\n")
}

// draw replaces the redrawn lines. They must fit the terminal's width.
func (s *screen) draw(lines []string) {
	if s.live == nil {
		return
	}
	out := s.erase() + strings.Join(lines, "\n")
	s.rows = len(lines)
	if out != "" {
		s.write(s.live, out)
	}
}

// clear removes the redrawn lines.
func (s *screen) clear() {
	if s.rows > 0 {
		s.write(s.live, s.erase())
		s.rows = 0
	}
}

func (s *screen) erase() string {
	switch {
	case s.rows == 0:
		return ""
	case s.rows == 1:
		return "\r\x1b[J"
	}
	return "\r\x1b[" + strconv.Itoa(s.rows-1) + "A\x1b[J"
}

func (s *screen) write(w io.Writer, text string) {
	if _, err := io.WriteString(w, text); err != nil && s.err == nil {
		s.err = err
	}
}
