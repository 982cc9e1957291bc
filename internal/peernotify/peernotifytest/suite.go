// Package peernotifytest has the test suite for all ways of notifying other processes.
package peernotifytest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"chorus/internal/peernotify"
)

// World is the environment of the processes in one test.
type World struct {
	// New returns the Peers of one more process, once it is connected. The suite closes them.
	New func(t *testing.T) peernotify.Peers
	// Lossy says that notifications may be lost in normal operation, for example because a queue is short.
	Lossy bool
	// Cut ends every connection and prevents new ones until Heal; nil if there are no connections.
	Cut, Heal func(t *testing.T)
}

// maxWait is how long a test waits for what must arrive, on a busy machine.
const maxWait = 2 * time.Minute

const one, two, probe = peernotify.Topic("cli:here:one@helper"), peernotify.Topic("cli:here:two@helper"), peernotify.Topic("probe")

// Run runs the suite; world is called for each test.
func Run(t *testing.T, world func(t *testing.T) World) {
	for name, test := range map[string]func(*testing.T, World){
		"EveryOtherProcess": everyOther, "HostileNames": hostileNames, "WhatIsNoTopic": noTopic, "Storm": storm,
		"TooManyToList": tooMany, "Closed": closed, "LostConnection": lostConnection, "NobodyWaits": nobodyWaits,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, world(t))
		})
	}
}

// process is a process that notifies and is notified.
type process struct {
	peernotify.Peers
	sub  *peernotify.Subscription
	came map[peernotify.Topic]bool // earlier topics, which may arrive again
}

// processes returns n processes that can reach each other.
func processes(t *testing.T, w World, n int) []process {
	t.Helper()
	var all []process
	for range n {
		p := process{Peers: w.New(t), came: map[peernotify.Topic]bool{}}
		t.Cleanup(p.Peers.Close)
		var err error
		if p.sub, err = p.Subscribe(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.sub.Close)
		all = append(all, p)
	}
	settle(t, all...)
	return all
}

// settle waits until each process hears each other, and forgets what that took.
func settle(t *testing.T, all ...process) {
	t.Helper()
	for i, from := range all {
		for j, to := range all {
			if i != j {
				await(t, to, func() { from.Notify(probe) }, probe)
			}
		}
	}
	// What was sent again in the meantime may still arrive; the last message sent arrives last.
	for i, from := range all {
		last := peernotify.Topic(fmt.Sprintf("last-%d-%d", i, time.Now().UnixNano()))
		for j, to := range all {
			if i != j {
				await(t, to, func() { from.Notify(last) }, last)
			}
		}
	}
	for _, p := range all {
		p.sub.Take()
	}
}

// await takes until the topic arrives, and sends again in case it was lost.
func await(t *testing.T, to process, send func(), want peernotify.Topic) {
	t.Helper()
	late := time.After(maxWait)
	for {
		send()
		again := time.After(100 * time.Millisecond)
		for waiting := true; waiting; {
			select {
			case <-to.sub.Woken():
				if got, _ := to.sub.Take(); slices.Contains(got, want) {
					return
				}
			case <-again:
				waiting = false
			case <-late:
				t.Fatalf("%q never came", want)
			}
		}
	}
}

// waitFor takes until all of the topics have arrived. Only they and what settling sent may arrive.
func (p process) waitFor(t *testing.T, want ...peernotify.Topic) {
	t.Helper()
	late := time.After(maxWait)
	left := slices.Clone(want)
	for len(left) > 0 {
		select {
		case <-p.sub.Woken():
		case <-late:
			t.Fatalf("never received %q", left)
		}
		got, all := p.sub.Take()
		if all {
			t.Fatal("told to look at everything")
		}
		for _, topic := range got {
			if !slices.Contains(want, topic) && !p.expected(topic) {
				t.Fatalf("received %q, want one of %q", topic, want)
			}
		}
		for _, topic := range want {
			p.came[topic] = true
		}
		left = slices.DeleteFunc(left, func(w peernotify.Topic) bool { return slices.Contains(got, w) })
	}
}

// expected reports whether the topic may arrive at any time: because settling sent it, or it arrived before.
func (p process) expected(t peernotify.Topic) bool {
	return t == probe || strings.HasPrefix(string(t), "last-") || p.came[t]
}

func (p process) quiet(t *testing.T) {
	t.Helper()
	got, all := p.sub.Take()
	if got = slices.DeleteFunc(got, p.expected); len(got) > 0 || all {
		t.Errorf("received %q, %v", got, all)
	}
}

// everyOther checks that all but the sender receive a notification, whatever it is about.
func everyOther(t *testing.T, w World) {
	all := processes(t, w, 3)
	for _, topic := range []peernotify.Topic{one, peernotify.Events("cli:here:one@helper"), "settings"} {
		all[0].Notify(topic)
		all[1].waitFor(t, topic)
		all[2].waitFor(t, topic)
	}
	all[1].Notify(two) // and it arrives after what the first one might have heard of itself
	all[0].waitFor(t, two)
	all[0].quiet(t)
}

// hostileNames checks that thread names cannot act as a statement, subject or separator.
func hostileNames(t *testing.T, w World) {
	all := processes(t, w, 2)
	for _, name := range []string{
		"cli:a:'; DROP TABLE threads; --", "cli:a:$1 \\ \" ' ` %s", "cli:a:line\nline\r\x00\x01end", "cli:a b.*.>:*", "cli:ä:\u2028🦊\u202e",
		"cli:a:[\"x\",\"*\"]", "cli:*:>", "cli:a:" + strings.Repeat("\x01", 1018), "cli:a:" + strings.Repeat("語", 339), "+cli:a:+",
	} {
		topic, err := peernotify.ParseTopic(name)
		if err != nil {
			t.Fatal(err)
		}
		all[0].Notify(topic)
		all[1].waitFor(t, topic)
	}
}

// noTopic checks that an invalid topic is not sent and does no harm.
func noTopic(t *testing.T, w World) {
	all := processes(t, w, 2)
	for _, bad := range []string{"", "*", "two words", "\xff", "cli:a:\xff", "cli:a:" + strings.Repeat("x", 9000), "+settings"} {
		all[0].Notify(peernotify.Topic(bad))
	}
	all[0].Notify(one)
	all[1].waitFor(t, one)
	all[1].quiet(t)
}

// storm checks that many notifications of the same few topics are delivered as those few topics.
func storm(t *testing.T, w World) {
	all := processes(t, w, 2)
	for range 20_000 {
		all[0].Notify(one)
		all[0].Notify(two)
	}
	if w.Lossy {
		await(t, all[1], func() { all[0].Notify(one) }, one)
		return
	}
	all[1].waitFor(t, one, two)
}

// tooMany checks that more topics than can be listed become a request to check everything.
func tooMany(t *testing.T, w World) {
	if w.Lossy {
		t.Skip("what a short queue loses is not counted") // the subscription's own test covers this
	}
	all := processes(t, w, 2)
	late := time.After(maxWait)
	for i := 0; ; i++ {
		for j := range 1000 {
			all[0].Notify(peernotify.Topic(fmt.Sprintf("cli:here:%d.%d", i, j)))
		}
		select {
		case <-all[1].sub.Woken():
			if got, everything := all[1].sub.Take(); everything {
				if len(got) > 0 {
					t.Errorf("everything, and %d topics", len(got))
				}
				return
			}
		case <-late:
			t.Fatal("never told to look at everything")
		}
	}
}

// closed checks that closed Peers neither send nor receive, and can be closed again.
func closed(t *testing.T, w World) {
	all := processes(t, w, 3)
	all[2].sub.Close()
	all[2].sub.Close()
	all[2].sub.Take()
	all[0].Notify(one)
	all[1].waitFor(t, one)
	all[2].quiet(t)
	all[0].Close()
	all[0].Close()
	all[0].Notify(two)
	all[2].Notify("three") // without a subscription
	all[1].waitFor(t, "three")
	all[1].quiet(t)
}

// lostConnection checks that a node that was cut off checks everything once, and then receives what follows.
func lostConnection(t *testing.T, w World) {
	if w.Cut == nil {
		t.Skip("there are no connections")
	}
	all := processes(t, w, 2)
	w.Cut(t)
	all[0].Notify(one)
	w.Heal(t)
	late := time.After(maxWait)
	for {
		select {
		case <-all[1].sub.Woken():
		case <-late:
			t.Fatal("never told to look at everything")
		}
		if _, everything := all[1].sub.Take(); everything {
			break
		}
	}
	await(t, all[1], func() { all[0].Notify(two) }, two) // a connection may come back in several steps
}

// nobodyWaits checks that a sender that reaches nobody continues.
func nobodyWaits(t *testing.T, w World) {
	all := processes(t, w, 2)
	if w.Cut != nil {
		w.Cut(t)
		defer w.Heal(t)
	}
	began := time.Now()
	for i := range 5000 { // more than any queue holds
		all[0].Notify(peernotify.Topic(fmt.Sprintf("cli:here:%d", i)))
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("5,000 notifications to nobody took %s", took)
	}
	all[0].Close()
	if took := time.Since(began); took > 40*time.Second {
		t.Errorf("the end of one that reaches nobody took %s", took)
	}
}
