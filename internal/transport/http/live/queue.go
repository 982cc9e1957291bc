package live

import (
	"iter"
	"strconv"
	"strings"
	"sync"

	"chorus/internal/await"
	"chorus/internal/feed"
)

// position is how far a reader is: it has every object up to a journal number, and the first few of the next one.
type position struct {
	after int64
	seq   int64 // the number of which it has a part; 0: none
	count int
}

// advance returns the position after an object.
func (p position) advance(head feed.Head) position {
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

// state tells whether a queue is complete, and why.
type state int

const (
	open state = iota
	full       // the reader is behind; it continues from the journal
	over       // the source ended
)

// queue holds the frames between the source's goroutine and the writer's. When it is full it
// stops the source and accepts nothing more.
type queue struct {
	wake chan struct{} // has a value when there is something to take or the state changed

	mu     sync.Mutex
	frames [][]byte
	bytes  int
	limit  int
	state  state
	at     position // after the last frame; read it only when the source has ended
	skip   position // the objects that the reader already has
}

func newQueue(room int, at position) *queue {
	return &queue{wake: make(chan struct{}, 1), limit: room, at: at, skip: at}
}

// fill queues what the source yields.
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
	return q.put(frame, q.at.advance(head))
}

// put queues a frame unless the queue is full. One frame is always accepted, however large; otherwise the text of a long
// answer would be sent over and over.
func (q *queue) put(frame []byte, at position) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.bytes >= q.limit {
		return false
	}
	q.frames = append(q.frames, frame)
	q.bytes += len(frame)
	q.at = at
	q.signal()
	return true
}

func (q *queue) end(s state) {
	q.mu.Lock()
	q.state = s
	q.mu.Unlock()
	q.signal()
}

func (q *queue) signal() { await.Notify(q.wake) }

func (q *queue) take() ([][]byte, state) {
	q.mu.Lock()
	defer q.mu.Unlock()
	frames := q.frames
	q.frames, q.bytes = nil, 0
	return frames, q.state
}

// Frame is the server-sent event of an object.
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

// comment is a line that clients ignore; it helps people who inspect the stream.
func comment(text string) []byte {
	return []byte(": trouble: " + strings.NewReplacer("\n", " ", "\r", " ").Replace(text) + "\n\n")
}
