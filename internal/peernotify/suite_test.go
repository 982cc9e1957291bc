package peernotify_test

import (
	"path/filepath"
	"testing"

	"chorus/internal/peernotify"
	"chorus/internal/peernotify/peernotifytest"
)

// Datagrams keep the promises of every way of notifying.
func TestSuite(t *testing.T) {
	t.Parallel()
	peernotifytest.Run(t, func(t *testing.T) peernotifytest.World {
		dir := filepath.Join(t.TempDir(), "peers")
		return peernotifytest.World{Lossy: true, New: func(*testing.T) peernotify.Peers { return peernotify.In(dir) }}
	})
}

func TestTopics(t *testing.T) {
	t.Parallel()
	for _, topic := range []peernotify.Topic{"settings", "mcp-servers", peernotify.Thread("cli:a:b"), peernotify.Events("cli:a:b@c-d")} {
		if got, err := peernotify.ParseTopic(string(topic)); err != nil || got != topic {
			t.Errorf("%q: %q, %v", topic, got, err)
		}
	}
	for _, s := range []string{"", "+", "+settings", "Settings", "a b", "*", "a:b", "++cli:a:b"} {
		if got, err := peernotify.ParseTopic(s); err == nil {
			t.Errorf("%q is the topic %q", s, got)
		}
	}
	if id, watched := peernotify.Events("cli:a:b").Thread(); id != "cli:a:b" || !watched {
		t.Error(id, watched)
	}
	if id, watched := peernotify.Thread("cli:a:b").Thread(); id != "cli:a:b" || watched {
		t.Error(id, watched)
	}
	if id, _ := peernotify.Topic("settings").Thread(); id != "" {
		t.Error(id)
	}
}
