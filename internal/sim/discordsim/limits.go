package discordsim

import (
	"encoding/json"
	"hash/fnv"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// rate is how many requests a bucket lets through in which time.
type rate struct {
	limit int
	per   time.Duration
}

// rates are the buckets that Discord is known to have; what is not listed has otherRate.
// Discord does not publish them: clients must read the headers, and so they do here.
var rates = map[string]rate{
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
	otherRate  = rate{50, time.Second}
	globalRate = rate{50, time.Second}
)

// renameRoute changes a channel. A change of its name or topic, and of nothing else, has a limit of
// its own below that of the route: the answer's headers do not tell of it before it is reached.
const renameRoute = "PATCH /channels/{channel}"

var renameRate = rate{2, 10 * time.Minute}

// renames reports whether a change of a channel is one of its name or topic.
func renames(body string) bool {
	var p struct {
		Name  *string `json:"name"`
		Topic *string `json:"topic"`
	}
	return json.Unmarshal([]byte(body), &p) == nil && (p.Name != nil || p.Topic != nil)
}

// bucket counts requests until its window ends.
type bucket struct {
	used int
	ends time.Time
}

// take counts one request; false: the window is full.
func (b *bucket) take(now time.Time, r rate, per time.Duration) bool {
	if !now.Before(b.ends) {
		b.used, b.ends = 0, now.Add(per)
	}
	if b.used >= r.limit {
		return false
	}
	b.used++
	return true
}

// limiter holds the buckets of everybody. Sim's lock is around it.
type limiter struct {
	now     func() time.Time
	scale   func(time.Duration) time.Duration
	buckets map[string]*bucket
	global  map[ID]*bucket
}

// verdict is what a limiter says of a request; it becomes headers.
type verdict struct {
	ok        bool
	global    bool
	scope     string
	name      string
	limit     int
	remaining int
	wait      time.Duration // until the window ends
	ends      time.Time
	pause     time.Duration // until a further limit than the bucket's lets requests through
}

// ask counts a request of who on a route, whose major parameter has a bucket of its own.
func (l *limiter) ask(who ID, route, major string, free bool) verdict {
	r, ok := rates[route]
	if !ok {
		r = otherRate
	}
	now := l.now()
	if !free {
		g := l.global[who]
		if g == nil {
			g = &bucket{}
			l.global[who] = g
		}
		if !g.take(now, globalRate, l.scale(globalRate.per)) {
			return verdict{global: true, scope: "global", name: "global", limit: globalRate.limit, wait: g.ends.Sub(now), ends: g.ends}
		}
	}
	b := l.bucket(who, route, major)
	v := verdict{ok: b.take(now, r, l.scale(r.per)), scope: "user", name: bucketName(route), limit: r.limit}
	v.remaining, v.wait, v.ends = r.limit-b.used, b.ends.Sub(now), b.ends
	return v
}

func (l *limiter) bucket(who ID, route, major string) *bucket {
	key := who.String() + " " + route + " " + major
	b := l.buckets[key]
	if b == nil {
		b = &bucket{}
		l.buckets[key] = b
	}
	return b
}

// also counts a request against a further limit. One that is reached refuses it, and the headers
// stay those of the route.
func (l *limiter) also(v verdict, who ID, name, major string, r rate) verdict {
	now := l.now()
	b := l.bucket(who, name, major)
	if v.ok = b.take(now, r, l.scale(r.per)); !v.ok {
		v.pause = b.ends.Sub(now)
	}
	return v
}

func bucketName(route string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(route)) // a hash takes everything
	return strconv.FormatUint(h.Sum64(), 16)
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 3, 64) }

// headers writes what every answer says of its bucket. Via stands on every answer: without
// it clients take a 429 for a ban by whoever stands before Discord.
func (v verdict) headers(h http.Header) {
	h.Set("Via", "1.1 discordsim")
	if v.name == "" {
		return
	}
	h.Set("X-RateLimit-Limit", strconv.Itoa(v.limit))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(v.remaining))
	h.Set("X-RateLimit-Reset", seconds(time.Duration(v.ends.UnixNano())))
	h.Set("X-RateLimit-Reset-After", seconds(v.wait))
	h.Set("X-RateLimit-Bucket", v.name)
	if !v.ok {
		h.Set("X-RateLimit-Scope", v.scope)
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(max(v.pause, v.wait).Seconds()))))
		if v.global {
			h.Set("X-RateLimit-Global", "true")
		}
	}
}

// body is the answer of a 429.
func (v verdict) body() object {
	words := "You are being rate limited."
	return object{"message": words, "retry_after": math.Round(max(v.pause, v.wait).Seconds()*1000) / 1000, "global": v.global}
}

// majorOf is the part of a path that has buckets of its own: a channel, a guild, a webhook with its token.
func majorOf(r *http.Request) string {
	for _, name := range []string{"channel", "guild", "webhook"} {
		if v := r.PathValue(name); v != "" {
			return strings.TrimSpace(v + " " + r.PathValue("token"))
		}
	}
	return ""
}
