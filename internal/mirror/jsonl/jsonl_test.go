package jsonl

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"chorus/internal/chat"
)

func TestReader(t *testing.T) {
	t.Parallel()
	in := NewReader(strings.NewReader("\xef\xbb\xbf"+strings.Repeat("y", 200_000)+"\nshort\n \nend"), 100_000)
	for _, want := range []Line{
		{No: 1, Long: true, Ended: true}, {No: 2, At: 200_004, Text: []byte("short"), Ended: true}, {No: 3, At: 200_010, Text: []byte(" "), Ended: true}, {No: 4, At: 200_012, Text: []byte("end")},
	} {
		got, err := in.Next()
		if err != nil || got.No != want.No || got.At != want.At || string(got.Text) != string(want.Text) || got.Long != want.Long || got.Ended != want.Ended {
			t.Errorf("got %+v, %v; want %+v", got, err, want)
		}
		if got.Blank() != (want.No == 3) {
			t.Errorf("line %d: blank is %v", got.No, got.Blank())
		}
	}
	if _, err := in.Next(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	if n, err := Append(path, nil); n != 0 || err != nil {
		t.Error(n, err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("made for nothing")
	}
	if n, err := Append(path, []byte("a\n")); n != 2 || err != nil {
		t.Error(n, err)
	}
	if n, err := Append(path, []byte("b\n")); n != 4 || err != nil {
		t.Error(n, err)
	}
	if err := Replace(path, []byte("c\n")); err != nil {
		t.Error(err)
	}
	if data, err := os.ReadFile(path); string(data) != "c\n" || err != nil {
		t.Errorf("%q %v", data, err)
	}
}

func TestFollower(t *testing.T) {
	t.Parallel()
	var written []int64
	var broken error
	loads := 0
	last := func() int64 { return int64(len(written)) }
	f := Follower{Last: last, Load: func() error { loads++; return nil }, Write: func(events []chat.Event) error {
		for _, ev := range events {
			written = append(written, ev.Seq)
		}
		if broken != nil {
			written = written[:len(written)-len(events)]
		}
		return broken
	}}
	events := func(from, to int64) (out []chat.Event) {
		for ; from <= to; from++ {
			out = append(out, chat.Event{Seq: from})
		}
		return out
	}
	if err := f.Apply(events(2, 3)); !errors.Is(err, ErrGap) || len(written) != 0 {
		t.Error(err, written)
	}
	if err := f.Apply(events(1, 2)); err != nil {
		t.Error(err)
	}
	broken = errors.New("full")
	if err := f.Apply(events(1, 4)); !errors.Is(err, broken) || len(written) != 2 {
		t.Error(err, written)
	}
	broken = nil
	if err := f.Apply(events(1, 4)); err != nil || len(written) != 4 || loads != 1 {
		t.Error(err, written, loads)
	}
}
