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

// roundTrips stands between a store and its server and counts how often the server says that it is done and waits for more.
func roundTrips(t *testing.T, address string) (string, *atomic.Int64) {
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
	count := &atomic.Int64{}
	server := to.Host
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go relay(client, server, count)
		}
	}()
	to.Host = listener.Addr().String()
	return to.String(), count
}

func relay(client net.Conn, server string, count *atomic.Int64) {
	defer client.Close()
	conn, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	defer conn.Close()
	go func() {
		_, _ = io.Copy(conn, client)
		_ = conn.Close()
	}()
	from := bufio.NewReader(conn)
	for { // each message is a letter, its length and the rest
		head, err := from.Peek(5)
		if err != nil {
			return
		}
		if head[0] == 'Z' {
			count.Add(1)
		}
		if _, err := io.CopyN(client, from, 1+int64(binary.BigEndian.Uint32(head[1:]))); err != nil {
			return
		}
	}
}

// However much a commit writes, the server is asked twice: for the thread's row, and for all the rest together with COMMIT.
func TestACommitIsTwoRoundTrips(t *testing.T) {
	t.Parallel()
	address, count := roundTrips(t, pgtest.Database(t))
	db := openURL(t, Options{URL: address})
	say(t, db, "words")
	row, err := db.Take(t.Context(), "cli:home:one@main")
	if err != nil {
		t.Fatal(err)
	}
	ada := chat.Principal{Kind: chat.LocalUser, ID: "ada"}
	for n := 1; n <= 3; n++ {
		before := count.Load()
		_, err := db.Commit(t.Context(), journal.Commit{Thread: row.ID, Epoch: row.Epoch, Status: chat.Running,
			Events: []chat.Event{{Run: "r", Body: chat.Said{Step: n, Blocks: chat.TextBlocks("an answer")}}, {Run: "r", Body: chat.ToolBegan{Call: "c", Name: "shell"}}},
			Money:  []ledger.Entry{{Run: "r", Step: n, Attempt: 1, Payer: ada, Model: "m", Settled: 5, How: ledger.ByUsage}},
			Audit:  []approval.Audit{auditLine(n), auditLine(n)}})
		if err != nil {
			t.Fatal(err)
		}
		if made := count.Load() - before; n == 3 && made != 2 { // the first ones also prepare
			t.Errorf("a commit took %d round trips", made)
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
