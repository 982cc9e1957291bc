package peernotify

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// However many topics there are and whatever they are called, no payload is too long and nothing is lost.
func TestPayloads(t *testing.T) {
	t.Parallel()
	var topics []Topic
	for i := range maxTopics {
		topics = append(topics, Topic(fmt.Sprintf("cli:here:%d%s", i, strings.Repeat("\x01", i*3))))
	}
	payloads := Payloads("me", topics, false, 7900)
	if len(payloads) < 10 {
		t.Errorf("%d payloads", len(payloads))
	}
	s, own := NewSubscription(func() {}), NewSubscription(func() {})
	for _, p := range payloads {
		if len(p) > 7900 {
			t.Errorf("a payload of %d bytes", len(p))
		}
		s.PutPayload("you", p)
		own.PutPayload("me", p)
	}
	got, all := s.Take()
	slices.Sort(got)
	slices.Sort(topics)
	if !slices.Equal(got, topics) || all {
		t.Errorf("%d topics of %d, %v", len(got), len(topics), all)
	}
	if got, all := own.Take(); len(got) > 0 || all {
		t.Errorf("the sender received %q, %v", got, all)
	}
	s.PutPayload("you", Payloads("me", topics, true, 7900)[0])
	if got, all := s.Take(); len(got) > 0 || !all {
		t.Errorf("%q, %v", got, all)
	}
	if p := Payloads("me", nil, false, 7900); len(p) > 0 {
		t.Errorf("%q", p)
	}
}
