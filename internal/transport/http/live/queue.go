package live

import (
	"iter"
	"strconv"
	"strings"
	"sync"

	"chorus/internal/feed"
)

// position is where a reader stands: it has every object up to a number, and of the
// next number the first few.
type position struct {
	after int64
	seq   int64 // the number it has in part; 0: none
	count int
}

// moved is the position behind an object.
func (p position) moved(head feed.Head) position {
	switch {
	case head.Seq == 0:
		return p
	case !head.More:
		return position{after: head.Seq}
	case p.seq == head.Seq:
		p.count++
	default:
		p.seq, p.count = head.Seq, 1
	}
	return p
}

// state says why a queue has an end.
type state int

const (
	open state = iota
	full       // the reader is behind; what follows is in the journal
	over       // the source ended
)

// queue holds the frames between the source's goroutine and the writer's. It takes
// frames until it is full; then it lets go of the source, and what it has is all.
type queue struct {
	bell chan struct{} // has a value when there is something to take

	mu     sync.Mutex
	frames [][]byte
	bytes  int
	room   int
	state  state
	at     position // behind the last frame taken in; read it when the source has ended
	skip   position // the objects of a number that the reader has already
}

func newQueue(room int, at position) *queue {
	return &queue{bell: make(chan struct{}, 1), room: room, at: at, skip: at}
}

// fill takes in what the source gives.
func (q *queue) fill(items iter.Seq2[feed.Item, error]) {
	for item, err := range items {
		var ok bool
		if err != nil {
			ok = q.put(comment(err.Error()), q.at)
		} else {
			ok = q.add(item)
		}
		if !ok {
			q.end(full)
			return
		}
	}
	q.end(over)
}

func (q *queue) add(item feed.Item) bool {
	head := item.Header()
	if head.Seq != 0 && head.Seq == q.skip.seq && q.skip.count > 0 {
		q.skip.count--
		return true
	}
	frame, err := Frame(item)
	if err != nil {
		frame = comment(err.Error())
	}
	return q.put(frame, q.at.moved(head))
}

// put takes a frame in where there is room. One frame is always taken, however large:
// the text so far of a long answer must not come again and again.
func (q *queue) put(frame []byte, at position) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.bytes >= q.room {
		return false
	}
	q.frames = append(q.frames, frame)
	q.bytes += len(frame)
	q.at = at
	q.ring()
	return true
}

func (q *queue) end(s state) {
	q.mu.Lock()
	q.state = s
	q.mu.Unlock()
	q.ring()
}

func (q *queue) ring() {
	select {
	case q.bell <- struct{}{}:
	default:
	}
}

func (q *queue) take() ([][]byte, state) {
	q.mu.Lock()
	defer q.mu.Unlock()
	frames := q.frames
	q.frames, q.bytes = nil, 0
	return frames, q.state
}

// Frame is an object as the stream has it.
func Frame(item feed.Item) ([]byte, error) {
	data, err := feed.Encode(item)
	if err != nil {
		return nil, err
	}
	head := item.Header()
	frame := make([]byte, 0, len(data)+64)
	frame = append(frame, "event: "...)
	frame = append(frame, head.Type...)
	if head.Seq != 0 && !head.More {
		frame = append(frame, "\nid: "...)
		frame = strconv.AppendInt(frame, head.Seq, 10)
	}
	frame = append(frame, "\ndata: "...)
	frame = append(frame, data...) // one line, as Encode promises
	return append(frame, "\n\n"...), nil
}

// comment is a line that programs skip and people who look see.
func comment(text string) []byte {
	return []byte(": trouble: " + strings.NewReplacer("\n", " ", "\r", " ").Replace(text) + "\n\n")
}
