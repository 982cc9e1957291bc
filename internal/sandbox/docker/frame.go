package docker

import (
	"bytes"
	"strconv"
	"strings"

	"chorus/internal/text"
)

// frame extracts the reports of run.sh from one stream. Anything before "start" and after
// "end" comes from the docker program, not the command. Everything in between is passed on
// byte for byte, however the stream is cut into pieces.
type frame struct {
	token string // starts with a byte that text does not contain, so nothing is held back for long
	state stage
	hold  []byte // what may be the start of a report
	note  []byte // docker's own output, at most maxNote
	start started
	end   ended
	none  bool // there is no such program
}

type stage uint8

const (
	before stage = iota
	inside
	after
)

type started struct {
	pid, since string
}

type ended struct {
	code, left, stuck int
}

const (
	maxNote = 8 << 10
	maxWord = 256 // longest report; a longer line is not ours
)

// feed takes the next piece and returns what the command printed of it.
func (f *frame) feed(p []byte) (out []byte) {
	buf := append(f.hold, p...)
	f.hold = nil
	for len(buf) > 0 {
		at := bytes.Index(buf, []byte(f.token))
		if at < 0 {
			keep := text.Overlap(buf, f.token)
			out = f.pass(out, buf[:len(buf)-keep])
			f.hold = buf[len(buf)-keep:]
			return out
		}
		out = f.pass(out, buf[:at])
		line, rest, whole := bytes.Cut(buf[at+len(f.token):], []byte("\n"))
		switch {
		case whole && f.report(string(line)):
			buf = rest
		case !whole && len(line) < maxWord:
			f.hold = buf[at:]
			return out
		default: // somebody else knows the token: treat it as text
			out = f.pass(out, buf[at:at+len(f.token)])
			buf = buf[at+len(f.token):]
		}
	}
	return out
}

// flush returns what was held back, at the end of the stream.
func (f *frame) flush() []byte {
	text := f.pass(nil, f.hold)
	f.hold = nil
	return text
}

func (f *frame) pass(text, p []byte) []byte {
	if f.state == inside {
		return append(text, p...)
	}
	f.note = append(f.note, p[:min(len(p), maxNote-len(f.note))]...)
	return text
}

// report parses one report line of run.sh.
func (f *frame) report(line string) bool {
	line, ours := strings.CutPrefix(line, " ")
	words := strings.Split(line, " ")
	if !ours {
		return false
	}
	var n [3]int
	for i := range min(len(words)-1, len(n)) {
		var err error
		if n[i], err = strconv.Atoi(words[i+1]); err != nil {
			return false
		}
	}
	switch {
	case words[0] == "start" && len(words) == 3 && f.state == before:
		f.state, f.start = inside, started{words[1], words[2]}
	case words[0] == "end" && len(words) == 4 && f.state == inside:
		f.state, f.end = after, ended{n[0], n[1], n[2]}
	case words[0] == "none" && len(words) == 1 && f.state == inside:
		f.none = true
	default:
		return false
	}
	return true
}
