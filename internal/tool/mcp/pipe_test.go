package mcp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// wire is a pipe whose other ends the test holds.
func wire(t *testing.T) (p *pipe, hears, says *os.File) {
	t.Helper()
	hears, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, says, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, f := range []*os.File{hears, in, out, says} {
			_ = f.Close()
		}
	})
	return newPipe(&process{in: in, out: out}), hears, says
}

func request(t *testing.T, method string, size int) *jsonrpc.Request {
	t.Helper()
	id, err := jsonrpc.MakeID(float64(1))
	if err != nil {
		t.Fatal(err)
	}
	return &jsonrpc.Request{ID: id, Method: method, Params: []byte(`{"a":"` + strings.Repeat("x", size) + `"}`)}
}

func TestServerThatDoesNotRead(t *testing.T) {
	t.Parallel()
	p, _, _ := wire(t)
	p.limit = 20 * time.Millisecond
	if err := p.Write(context.Background(), request(t, "m", 1<<20)); err == nil {
		t.Fatal("it was written")
	}
	if err := p.failure(); err == nil || !strings.Contains(err.Error(), "does not read") {
		t.Errorf("%v", err)
	}
	if _, err := p.Read(t.Context()); err == nil {
		t.Error("it is still open")
	}
}

func TestWriteThatNeverBeganHarmsNobody(t *testing.T) {
	t.Parallel()
	p, hears, _ := wire(t)
	p.turn <- struct{}{} // somebody writes
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Write(ctx, request(t, "m", 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	<-p.turn
	if err := p.Write(t.Context(), request(t, "after", 1)); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(hears).ReadString('\n'); err != nil || !strings.Contains(line, `"after"`) {
		t.Errorf("%s %v", line, err)
	}
}

func TestQuestionsWaitForTheirAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, _, says := wire(t)
		fmt.Fprintln(says, `{"jsonrpc":"2.0","id":7,"method":"ping"}`)
		p.turn <- struct{}{} // an answer is being written
		got := make(chan error, 1)
		go func() {
			_, err := p.Read(context.Background())
			got <- err
		}()
		synctest.Wait()
		if len(got) > 0 {
			t.Fatal("the next question was taken before the answer was out")
		}
		<-p.turn
		if err := <-got; err != nil {
			t.Error(err)
		}
	})
}

func TestLinesThatAreNoMessages(t *testing.T) {
	t.Parallel()
	p, _, says := wire(t)
	go func() {
		fmt.Fprint(says, "hello\n\n{\"jsonrpc\":\"2.0\"}\n[]\n[3]\n\xff\xfe\n")
		fmt.Fprint(says, `[{"jsonrpc":"2.0","method":"a"},7,{"jsonrpc":"2.0","id":2,"result":{}}]`+"\r\n")
		fmt.Fprint(says, `{"jsonrpc":"2.0","method":"last"}`) // no newline before the end
		_ = says.Close()
	}()
	var got []string
	for {
		msg, err := p.Read(t.Context())
		if err != nil {
			if !errors.Is(err, io.EOF) {
				t.Error(err)
			}
			break
		}
		got = append(got, fmt.Sprintf("%T", msg))
	}
	if want := "*jsonrpc2.Request *jsonrpc2.Response *jsonrpc2.Request"; strings.Join(got, " ") != want {
		t.Errorf("%v", got)
	}
}

func TestOnlyNoise(t *testing.T) {
	t.Parallel()
	p, _, says := wire(t)
	go func() {
		for range mostNoise + 2 {
			fmt.Fprintln(says, "GET / HTTP/1.1")
		}
	}()
	if _, err := p.Read(t.Context()); err == nil || !strings.Contains(err.Error(), "something other than MCP messages, most recently: GET /") {
		t.Errorf("%v", err)
	}
}

func FuzzPipe(f *testing.F) {
	f.Add([]byte("x\n{}\n[{}]\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n"))
	f.Add([]byte(`{"jsonrpc":"2.0","id":null,"error":{}}` + "\n" + `{"jsonrpc":"2.0","id":{},"method":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 32<<10 {
			return // what a pipe holds
		}
		p, _, says := wire(t)
		if _, err := says.Write(data); err != nil {
			t.Fatal(err)
		}
		_ = says.Close()
		for n := 0; ; n++ {
			msg, err := p.Read(t.Context())
			if err != nil {
				return
			}
			if msg == nil || n > len(data) {
				t.Fatalf("message %d of %d bytes is %v", n, len(data), msg)
			}
		}
	})
}
