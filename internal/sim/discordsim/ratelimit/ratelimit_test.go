package ratelimit

import (
	"net/http"
	"testing"
	"time"
)

// Every change of a channel had the limit that Discord has for its name and topic.
func TestOnlyNamesAndTopicsAreRare(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	l := New(func() time.Time { return now }, func(d time.Duration) time.Duration { return d })
	change := func(body string) Verdict {
		return l.Ask(Request{Who: "1", Route: changeChannel, Major: "7", Body: body})
	}
	for range 10 {
		if v := change(`{"archived":true,"locked":true,"rate_limit_per_user":5}`); !v.OK {
			t.Fatal("archiving is limited")
		}
	}
	for _, body := range []string{`{"name":"a"}`, `{"topic":"b"}`} {
		if v := change(body); !v.OK {
			t.Fatalf("%s is limited", body)
		}
	}
	v := change(`{"name":"c","archived":false}`)
	h := http.Header{}
	v.Headers(h)
	if v.OK || h.Get("X-RateLimit-Remaining") == "0" || h.Get("Retry-After") != "600" || v.Body()["retry_after"] != 600.0 {
		t.Errorf("the third name: %v, %v, %v", v.OK, h, v.Body())
	}
	if !change(`{"locked":false}`).OK || !l.Ask(Request{Who: "1", Route: changeChannel, Major: "8", Body: `{"name":"a"}`}).OK {
		t.Error("the rest, or another channel, is limited with it")
	}
	now = now.Add(renameRate.Per)
	if !change(`{"name":"c"}`).OK {
		t.Error("it is limited for longer")
	}
}

func TestBuckets(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	l := New(func() time.Time { return now }, func(d time.Duration) time.Duration { return d / 10 })
	post := func(who, channel string, free bool) Verdict {
		return l.Ask(Request{Who: who, Route: "POST /channels/{channel}/messages", Major: channel, Free: free})
	}
	for range 5 {
		if !post("1", "7", false).OK {
			t.Fatal("limited too early")
		}
	}
	if post("1", "7", false).OK || !post("1", "8", false).OK || !post("2", "7", false).OK {
		t.Error("a bucket is one account's in one channel")
	}
	now = now.Add(500 * time.Millisecond) // a tenth of the window
	if !post("1", "7", false).OK {
		t.Error("the window did not end")
	}
	var global int
	for i := range 60 {
		if v := l.Ask(Request{Who: "3", Route: "GET /x", Major: string(rune('a' + i))}); v.global {
			global++
		}
	}
	if global != 10 || !post("3", "7", true).OK {
		t.Errorf("%d met the global limit, and what is free of it: %v", global, post("3", "7", true))
	}
}
