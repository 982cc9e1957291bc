package store

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/url"
	"sync/atomic"
	"testing"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/ledger"
	"chorus/internal/store/pgtest"
)

// link stands between a store and its server: it counts how often the server says that it is done and waits for more, and can cut a
// connection after that.
type link struct {
	server string
	count  atomic.Int64
	cut    atomic.Int32 // 0, or what happens to a connection: see below
}

const (
	cutAfterOne  = 1 // after the next round trip it is cut: the server never hears what comes then
	loseTheOther = 2 // what comes after the next round trip is heard, and its answer is lost
	cutBefore    = 3 // it is cut: the server never hears what comes next
	loseThis     = 4 // what comes next is heard, and its answer is lost
)

func linkTo(t *testing.T, address string) (string, *link) {
	t.Helper()
	to, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	l := &link{server: to.Host}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go l.relay(client)
		}
	}()
	to.Host = listener.Addr().String()
	return to.String(), l
}

func (l *link) relay(client net.Conn) {
	defer client.Close()
	conn, err := net.Dial("tcp", l.server)
	if err != nil {
		return
	}
	defer conn.Close()
	var losing atomic.Bool
	go func() {
		defer conn.Close()
		for buf := make([]byte, 1<<16); ; {
			n, err := client.Read(buf)
			switch {
			case err != nil, l.cut.CompareAndSwap(cutBefore, 0):
				return
			case l.cut.CompareAndSwap(loseThis, 0):
				losing.Store(true)
			}
			if _, err := conn.Write(buf[:n]); err != nil {
				return
			}
		}
	}()
	from := bufio.NewReader(conn)
	for { // each message is a letter, its length and the rest
		head, err := from.Peek(5)
		if err != nil {
			return
		}
		to, done := io.Writer(client), head[0] == 'Z'
		if losing.Load() {
			to = io.Discard
		}
		if _, err := io.CopyN(to, from, 1+int64(binary.BigEndian.Uint32(head[1:]))); err != nil || losing.Load() && done {
			return
		}
		if !done {
			continue
		}
		l.count.Add(1)
		switch {
		case l.cut.CompareAndSwap(cutAfterOne, 0):
			return
		case l.cut.CompareAndSwap(loseTheOther, 0):
			losing.Store(true)
		}
	}
}

// However much a commit writes, the server is asked twice: for the thread's row, and for all the rest together with COMMIT. An owner that
// knows how its last commit left the row asks once.
func TestRoundTripsOfACommit(t *testing.T) {
	t.Parallel()
	address, l := linkTo(t, pgtest.Database(t))
	db := openURL(t, Options{URL: address})
	say(t, db, "words")
	row, err := db.Take(t.Context(), "cli:home:one@main")
	if err != nil {
		t.Fatal(err)
	}
	ada := chat.Principal{Kind: chat.LocalUser, ID: "ada"}
	const guest, owner = 0, 1
	for n, now := range []struct {
		who   int
		trips int64
	}{{guest, 0}, {owner, 0}, {owner, 0}, {owner, 1}, {owner, 1}, {guest, 2}, {owner, 2}, {owner, 1}} { // the first ones also prepare
		c := journal.Commit{Thread: row.ID, Events: []chat.Event{{Body: chat.Received{Blocks: chat.TextBlocks("more")}}}, Audit: []approval.Audit{auditLine(n), auditLine(n)}}
		if now.who == owner {
			c.Epoch, c.Status = row.Epoch, chat.Running
			c.Events = []chat.Event{{Run: "r", Body: chat.Said{Step: n, Blocks: chat.TextBlocks("an answer")}}, {Run: "r", Body: chat.ToolBegan{Call: "c", Name: "shell"}}}
			c.Money = []ledger.Entry{{Run: "r", Step: n, Attempt: 1, Payer: ada, Model: "m", Settled: 5, How: ledger.ByUsage}}
		}
		before := l.count.Load()
		_, err := db.Commit(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if made := l.count.Load() - before; now.trips != 0 && made != now.trips {
			t.Errorf("commit %d took %d round trips and not %d", n, made, now.trips)
		}
	}
}

// A statement that is refused takes its transaction with it, also when its answer comes with that of COMMIT; the next commit
// has a connection that works.
func TestAStatementFailsWithCommit(t *testing.T) {
	t.Parallel()
	db := openURL(t, Options{URL: pgtest.Database(t)})
	say(t, db, "words")
	arrives := journal.Commit{Thread: "cli:home:one@main", Events: []chat.Event{{Platform: "test", PlatformID: "x", Body: chat.Received{Blocks: chat.TextBlocks("two"), Prompt: true}}}}
	if _, err := db.Commit(t.Context(), arrives); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if _, err := db.Commit(t.Context(), arrives); !errors.Is(err, journal.ErrDuplicate) {
			t.Fatalf("twice: %v", err)
		}
	}
	row, err := db.Thread(t.Context(), "cli:home:one@main")
	if err != nil || row.Next != 3 || row.Waiting != 2 {
		t.Errorf("next %d, %d wait, %v", row.Next, row.Waiting, err)
	}
}

// A connection that is lost in the second round trip leaves open whether the commit happened; the server is asked. A message that comes
// twice is refused as one that was there, and not taken for the first.
func TestAConnectionIsLostInTheSecondRoundTrip(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]int32{"before the server hears": cutAfterOne, "before its answer is heard": loseTheOther} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, l := linkTo(t, pgtest.Database(t))
			db := openURL(t, Options{URL: address})
			say(t, db, "words")
			arrives := func(id string) (journal.Committed, error) {
				return db.Commit(t.Context(), journal.Commit{Thread: "cli:home:one@main", Events: []chat.Event{
					{Platform: "test", PlatformID: id, Body: chat.Received{Blocks: chat.TextBlocks(id), Prompt: true}}}})
			}
			for _, id := range []string{"x", "y"} { // the first ones also prepare
				if _, err := arrives(id); err != nil {
					t.Fatal(err)
				}
			}
			l.cut.Store(how)
			if done, err := arrives("x"); !errors.Is(err, journal.ErrDuplicate) {
				t.Errorf("twice: %+v, %v", done, err)
			}
			l.cut.Store(how)
			if done, err := arrives("z"); err != nil || len(done.Events) != 1 || done.Events[0].Seq != 4 || done.Next != 5 || done.Waiting != 4 {
				t.Errorf("once: %+v, %v", done, err)
			}
			row, err := db.Take(t.Context(), "cli:home:one@main")
			if err != nil || row.Next != 5 || row.Waiting != 4 {
				t.Fatalf("next %d, %d wait, %v", row.Next, row.Waiting, err)
			}
			owner := journal.Commit{Thread: row.ID, Epoch: row.Epoch, Status: chat.Running, Events: []chat.Event{{Run: "r", Body: chat.Said{Step: 1, Blocks: chat.TextBlocks("an answer")}}}}
			if _, err := db.Commit(t.Context(), owner); err != nil {
				t.Fatal(err)
			}
			l.cut.Store(how)
			if done, err := db.Commit(t.Context(), owner); err != nil || done.Next != 7 {
				t.Errorf("an owner's: %+v, %v", done, err)
			}
			if l.cut.Load() != 0 {
				t.Error("nothing was cut")
			}
		})
	}
}
