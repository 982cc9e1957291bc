// Package ratelimit counts requests as Discord does: a bucket for each route and channel, one for all requests of a bot,
// and tighter limits that no header mentions. It promises that an answer's headers are those that clients wait by.
package ratelimit

import (
	"encoding/json"
	"hash/fnv"
	"math"
	"net/http"
	"strconv"
	"time"
)

// Rate is how many requests a bucket allows in which time.
type Rate struct {
	Limit int
	Per   time.Duration
}

// rates are the known buckets of Discord; all others have otherRate. Discord does not publish them: clients must read the headers, here too.
var rates = map[string]Rate{
	"POST /channels/{channel}/messages":                                   {5, 5 * time.Second},
	"PATCH /channels/{channel}/messages/{message}":                        {5, 5 * time.Second},
	"DELETE /channels/{channel}/messages/{message}":                       {5, time.Second},
	"GET /channels/{channel}/messages":                                    {5, 5 * time.Second},
	"POST /channels/{channel}/messages/bulk-delete":                       {1, 3 * time.Second},
	"POST /channels/{channel}/typing":                                     {5, 5 * time.Second},
	"PUT /channels/{channel}/messages/{message}/reactions/{emoji}/@me":    {4, time.Second},
	"DELETE /channels/{channel}/messages/{message}/reactions/{emoji}/@me": {4, time.Second},
	"POST /channels/{channel}/threads":                                    {50, 5 * time.Minute},
	"POST /channels/{channel}/messages/{message}/threads":                 {50, 5 * time.Minute},
	"POST /webhooks/{webhook}/{token}":                                    {5, 2 * time.Second},
	"PATCH /webhooks/{webhook}/{token}/messages/{message}":                {5, 2 * time.Second},
	"PUT /applications/{application}/commands":                            {200, 24 * time.Hour},
}

var (
	otherRate  = Rate{50, time.Second}
	globalRate = Rate{50, time.Second}
)

// changeChannel changes a channel. A change of only its name or topic has its own limit below that of the route.
const changeChannel = "PATCH /channels/{channel}"

var renameRate = Rate{2, 10 * time.Minute}

// ReadsBody reports whether the limit of a route depends on the request's body.
func ReadsBody(route string) bool { return route == changeChannel }

// renames reports whether a change of a channel only affects its name or topic.
func renames(body string) bool {
	var p struct {
		Name  *string `json:"name"`
		Topic *string `json:"topic"`
	}
	return json.Unmarshal([]byte(body), &p) == nil && (p.Name != nil || p.Topic != nil)
}

// Bucket counts requests until its window ends. The zero value is empty.
type Bucket struct {
	used int
	ends time.Time
}

// Take counts one request in a window of the given length; false: the window is full.
func (b *Bucket) Take(now time.Time, limit int, window time.Duration) bool {
	if !now.Before(b.ends) {
		b.used, b.ends = 0, now.Add(window)
	}
	if b.used >= limit {
		return false
	}
	b.used++
	return true
}

// Limiter holds the buckets of everybody. It does not lock.
type Limiter struct {
	now     func() time.Time
	scale   func(time.Duration) time.Duration
	buckets map[string]*Bucket
}

// New returns a limiter for a clock, with windows scaled by scale.
func New(now func() time.Time, scale func(time.Duration) time.Duration) *Limiter {
	return &Limiter{now: now, scale: scale, buckets: map[string]*Bucket{}}
}

// Request is a request to count.
type Request struct {
	Who   string // the account; "": a token in the path
	Route string // method and path as mounted
	Major string // the part of the path with its own buckets
	Body  string // if [ReadsBody] says so
	Free  bool   // it does not count globally
}

// Verdict is the limiter's result for a request; it becomes headers. The zero value mentions no bucket.
type Verdict struct {
	OK        bool
	global    bool
	scope     string
	name      string
	limit     int
	remaining int
	wait      time.Duration // until the window ends
	ends      time.Time
	pause     time.Duration // until a tighter limit than the bucket's allows requests again
}

// Free is the verdict for callers without limits.
func Free() Verdict { return Verdict{OK: true} }

// Refused is a verdict without a bucket: wait, until ends.
func Refused(wait time.Duration, ends time.Time, global bool) Verdict {
	v := Verdict{global: global, scope: "shared", name: "storm", limit: 5, wait: wait, ends: ends}
	if global {
		v.scope = "global"
	}
	return v
}

// Ask counts a request.
func (l *Limiter) Ask(r Request) Verdict {
	rate, ok := rates[r.Route]
	if !ok {
		rate = otherRate
	}
	now := l.now()
	if !r.Free {
		g := l.bucket(r.Who, "global", "")
		if !g.Take(now, globalRate.Limit, l.scale(globalRate.Per)) {
			return Verdict{global: true, scope: "global", name: "global", limit: globalRate.Limit, wait: g.ends.Sub(now), ends: g.ends}
		}
	}
	b := l.bucket(r.Who, r.Route, r.Major)
	v := Verdict{OK: b.Take(now, rate.Limit, l.scale(rate.Per)), scope: "user", name: bucketName(r.Route), limit: rate.Limit}
	v.remaining, v.wait, v.ends = rate.Limit-b.used, b.ends.Sub(now), b.ends
	if v.OK && ReadsBody(r.Route) && renames(r.Body) {
		// The headers stay those of the route, as Discord's do.
		b := l.bucket(r.Who, r.Route+" name and topic", r.Major)
		if v.OK = b.Take(now, renameRate.Limit, l.scale(renameRate.Per)); !v.OK {
			v.pause = b.ends.Sub(now)
		}
	}
	return v
}

func (l *Limiter) bucket(who, name, major string) *Bucket {
	key := who + " " + name + " " + major
	b := l.buckets[key]
	if b == nil {
		b = &Bucket{}
		l.buckets[key] = b
	}
	return b
}

func bucketName(route string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(route)) // a hash never fails
	return strconv.FormatUint(h.Sum64(), 16)
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 3, 64) }

// Counted reports whether the verdict has a bucket, so that its headers are meaningful.
func (v Verdict) Counted() bool { return v.name != "" }

// Headers writes the rate limit headers of an answer. Via is on every answer: without it, clients take a 429 for a ban by Discord's proxy.
func (v Verdict) Headers(h http.Header) {
	h.Set("Via", "1.1 discordsim")
	if !v.Counted() {
		return
	}
	h.Set("X-RateLimit-Limit", strconv.Itoa(v.limit))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(v.remaining))
	h.Set("X-RateLimit-Reset", seconds(time.Duration(v.ends.UnixNano())))
	h.Set("X-RateLimit-Reset-After", seconds(v.wait))
	h.Set("X-RateLimit-Bucket", v.name)
	if !v.OK {
		h.Set("X-RateLimit-Scope", v.scope)
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(max(v.pause, v.wait).Seconds()))))
		if v.global {
			h.Set("X-RateLimit-Global", "true")
		}
	}
}

// Body is the body of a 429.
func (v Verdict) Body() map[string]any {
	return map[string]any{"message": "You are being rate limited.", "retry_after": math.Round(max(v.pause, v.wait).Seconds()*1000) / 1000, "global": v.global}
}
