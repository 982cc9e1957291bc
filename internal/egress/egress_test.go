package egress

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

func TestListedHosts(t *testing.T) {
	t.Parallel()
	b := start(t, Rules{Hosts: []string{"open.example.com", "*.wide.example.com", "ported.example.com:8080"}})
	hello := func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "hello from "+r.Host) }
	for _, at := range []string{"open.example.com:80", "open.example.com:8080", "a.b.wide.example.com:80", "wide.example.com:80", "ported.example.com:8080", "ported.example.com:80", "shut.example.com:80"} {
		b.server(at, hello)
	}
	b.tlsServer("open.example.com:443", hello)
	b.tlsServer("shut.example.com:443", hello)
	for _, address := range []string{"http://open.example.com/", "http://OPEN.example.com/x", "http://open.example.com:80/", "https://open.example.com/", "http://a.b.wide.example.com/", "http://ported.example.com:8080/"} {
		resp, body := b.do(request("GET", address, nil))
		if resp.StatusCode != 200 || !strings.HasPrefix(body, "hello from ") {
			t.Errorf("%s: %d %s", address, resp.StatusCode, body)
		}
	}
	before := len(b.world.dials())
	for _, inner := range []string{"127.0.0.1:1", "[::1]:80", "169.254.169.254:80", "10.0.0.5:443"} {
		resp, body := b.do(request("GET", "http://"+inner+"/", nil))
		if last := b.refusals()[len(b.refusals())-1]; last != (Refusal{Host: inner, Kind: Inside}) || resp.StatusCode != http.StatusForbidden || !strings.Contains(body, inner) {
			t.Errorf("%s: %d %s, reported %+v", inner, resp.StatusCode, body, last)
		}
	}
	for _, test := range []struct{ address, host string }{
		{"http://shut.example.com/", "shut.example.com"}, {"http://open.example.com:8080/", "open.example.com:8080"}, {"http://wide.example.com/", "wide.example.com"},
		{"http://ported.example.com/", "ported.example.com"}, {"http://notwide.example.com.evil.example/", "notwide.example.com.evil.example"},
		{"http://93.184.215.1/", "93.184.215.1"}, {"http://[2606:4700::1111]/", "[2606:4700::1111]"},
	} {
		resp, body := b.do(request("GET", test.address, nil))
		if resp.StatusCode != http.StatusForbidden || !strings.Contains(body, `"`+test.host+`"`) || !strings.Contains(body, "egress.hosts") {
			t.Errorf("%s: %d %s", test.address, resp.StatusCode, body)
		}
		if last := b.refusals()[len(b.refusals())-1]; last != (Refusal{Host: test.host, Kind: NotListed}) {
			t.Errorf("%s: reported %+v", test.address, last)
		}
	}
	if _, err := b.client.Get("https://shut.example.com/"); err == nil || !strings.Contains(err.Error(), "shut.example.com not listed") {
		t.Errorf("CONNECT: %v", err)
	}
	if n := len(b.refusals()); n != 12 {
		t.Errorf("%d refusals in all", n)
	}
	if after := b.world.dials(); len(after) != before {
		t.Errorf("refused and yet dialled: %v", after[before:])
	}
}

func TestRulesChange(t *testing.T) {
	t.Parallel()
	b := start(t, Rules{})
	b.server("late.example.com:80", echo)
	get := func() int {
		resp, _ := b.do(request("GET", "http://late.example.com/", nil))
		return resp.StatusCode
	}
	first := get()
	if err := b.proxy.SetRules(Rules{Hosts: []string{"late.example.com"}}); err != nil {
		t.Fatal(err)
	}
	second := get()
	if err := b.proxy.SetRules(Rules{Hosts: []string{"no good"}}); err == nil {
		t.Error("a broken list was taken")
	}
	third := get()
	if err := b.proxy.SetRules(Rules{}); err != nil {
		t.Fatal(err)
	}
	if got, want := []int{first, second, third, get()}, []int{403, 200, 200, 403}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
