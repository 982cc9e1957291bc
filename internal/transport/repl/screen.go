package repl

import (
	"io"
	"strconv"
	"strings"
)

// screen prints lines that stay, above a few that are redrawn: a spinner, the
// unfinished line of an answer. Without a terminal only what stays is printed.
type screen struct {
	live io.Writer // nil: nothing is ever redrawn
	rows int       // redrawn lines that are on the terminal now
	err  error     // the first failure of a write, kept for the end
}

// print writes lines to w for good.
func (s *screen) print(w io.Writer, lines ...string) {
	if len(lines) == 0 {
		return
	}
	s.clear()
	s.write(w, strings.Join(lines, "\n")+"\n")
}

// draw replaces the lines that are redrawn. They must fit the terminal's width.
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

// clear takes the redrawn lines away.
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
