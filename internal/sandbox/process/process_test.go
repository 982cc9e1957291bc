package process

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"chorus/internal/sandbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestNotBegun: what could not be begun is an error, and leaves no reader behind.
func TestNotBegun(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	command := sandbox.Command{Stdin: []byte("given")}
	if _, err := Start(command, func(*Running, Streams) (Process, error) { return nil, refused }); !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
}

func TestArgv(t *testing.T) {
	t.Parallel()
	bash := func() string { return "/x/bash" }
	for _, tt := range []struct {
		command sandbox.Command
		want    string
	}{
		{sandbox.Command{Argv: []string{"ls", "a b"}}, "ls|a b"},
		{sandbox.Command{Shell: "ls -l"}, "/x/bash|-c|ls -l"},
		{sandbox.Command{Shell: "cd x && ls"}, "/x/bash|-c|cd x && ls"},
	} {
		if got := strings.Join(Argv(tt.command, bash), "|"); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.command, got, tt.want)
		}
	}
}

// TestOutputThatIsReadLate: what was written before the deadline is kept, also where nobody came to read it
// before; what is written for ever is not waited for.
func TestOutputThatIsReadLate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		ends bool
	}{
		"ended": {"said\n", true}, "held": {"said\n", false}, "nothing, ended": {"", true}, "nothing, held": {"", false},
		"more than one read": {strings.Repeat("x", 50_000), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ours, theirs, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer ours.Close()
			defer theirs.Close()
			if _, err := theirs.WriteString(c.text); err != nil {
				t.Fatal(err)
			}
			if c.ends {
				theirs.Close()
			}
			if err := ours.SetReadDeadline(time.Unix(1, 0)); err != nil {
				t.Fatal(err)
			}
			var out output
			if out.read(ours, 0); string(out.all) != c.text || out.held == c.ends {
				t.Errorf("%d bytes of %d, held %v", len(out.all), len(c.text), out.held)
			}
		})
	}
	t.Run("for ever", func(t *testing.T) {
		t.Parallel()
		ours, theirs, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer theirs.Close()
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			for {
				if _, err := theirs.WriteString(strings.Repeat("x", 1000)); err != nil {
					return
				}
			}
		}()
		if err := ours.SetReadDeadline(time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
		var out output
		if out.read(ours, 0); !out.held || len(out.all) > pipeful {
			t.Errorf("held %v, %d bytes", out.held, len(out.all))
		}
		ours.Close()
		<-stopped
	})
}
