package egress

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Rules say which hosts one sandbox may reach and which secrets are inserted into its requests.
type Rules struct {
	// Hosts may be reached: "api.example.com", "*.example.com" (every name below it, but not itself),
	// "*" (every public name), each with an optional ":port". Without a port, 80 and 443 are meant.
	// An IP address must be listed itself. An address that is not public, or a name that leads to
	// one, must be listed as exactly that host and port.
	Hosts []string
	// Secrets replace their placeholders. Listing a host here does not allow it; only Hosts does.
	Secrets []Secret
}

// Secret is a value that programs use without seeing it, by writing {{secret:name}}.
type Secret struct {
	Name string // letters, digits, '_', '-' and '.', at most 64
	// Value returns the value. It is called once per request to one of Hosts, from
	// many goroutines, so a slow lookup should be cached.
	Value func() (string, error)
	// Hosts are the hosts it is for, written as in Rules but never "*". Without a port: HTTPS on
	// 443. With a port other than 443 it may also be sent over plain HTTP.
	Hosts []string
}

// Check returns what is wrong with rules before they are used.
func Check(r Rules) error {
	_, err := compile(r)
	return err
}

// PrivateHosts returns a function that reports which hosts and ports a list of hosts,
// written as in Rules, opens although their address is not public. It is for others who
// connect on behalf of an agent. Invalid entries open nothing.
func PrivateHosts(hosts []string) func(host, port string) bool {
	var set ruleset
	for _, text := range hosts {
		if p, err := parseHostPattern(text); err == nil {
			set.patterns = append(set.patterns, p)
		}
	}
	return set.allowsPrivate
}

// hostPattern is one entry of a list of hosts.
type hostPattern struct {
	host     string // canonical; for a wildcard without "*."; empty: every name
	port     string // empty: the usual ones
	wildcard bool   // names below host
}

type secretRule struct {
	Secret
	patterns []hostPattern
}

// ruleset is Rules after parsing.
type ruleset struct {
	patterns []hostPattern
	secrets  []secretRule
}

func compile(r Rules) (*ruleset, error) {
	var set ruleset
	for _, text := range r.Hosts {
		p, err := parseHostPattern(text)
		if err != nil {
			return nil, err
		}
		set.patterns = append(set.patterns, p)
	}
	for _, s := range r.Secrets {
		if !validName(s.Name) {
			return nil, fmt.Errorf("secret %q: use letters, digits, _ - and . in its name, at most 64", s.Name)
		}
		if s.Value == nil {
			return nil, fmt.Errorf("secret %q has no value", s.Name)
		}
		if slices.ContainsFunc(set.secrets, func(o secretRule) bool { return o.Name == s.Name }) {
			return nil, fmt.Errorf("secret %q is listed twice", s.Name)
		}
		rule := secretRule{Secret: s}
		for _, text := range s.Hosts {
			p, err := parseHostPattern(text)
			if err == nil && p.wildcard && p.host == "" {
				err = errors.New(`"*" would send it anywhere; name its hosts`)
			}
			if err != nil {
				return nil, fmt.Errorf("secret %q: %w", s.Name, err)
			}
			rule.patterns = append(rule.patterns, p)
		}
		set.secrets = append(set.secrets, rule)
	}
	return &set, nil
}

func parseHostPattern(text string) (hostPattern, error) {
	var p hostPattern
	host := strings.TrimSpace(text)
	bad := func(why string) (hostPattern, error) {
		return hostPattern{}, fmt.Errorf("host %q %s; write name, *.domain or name:port", text, why)
	}
	if addr, err := netip.ParseAddr(host); err == nil && addr.Is6() {
		host = "[" + host + "]" // an address alone, without a port
	}
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		host, p.port = host[:i], host[i+1:]
		if !validPort(p.port) {
			return bad("has no good port")
		}
	}
	if rest, ok := strings.CutPrefix(host, "*."); ok {
		p.wildcard, host = true, rest
	} else if host == "*" {
		p.wildcard = true
		return p, nil
	}
	var ok bool
	if p.host, ok = canonical(host); !ok {
		return bad("is not a host name")
	}
	if p.wildcard && numeric(p.host) {
		return bad("has a * before an address")
	}
	return p, nil
}

func validPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0 && port[0] != '0' && port[0] != '+'
}

// canonical returns the canonical form of a host, or false if it is invalid: lower case,
// without a trailing dot, addresses without brackets, IPv4 in IPv6 as IPv4.
func canonical(host string) (string, bool) {
	if inner, ok := strings.CutPrefix(host, "["); ok {
		if inner, ok = strings.CutSuffix(inner, "]"); !ok {
			return "", false
		}
		addr, err := netip.ParseAddr(inner)
		if err != nil || !addr.Is6() || addr.Zone() != "" {
			return "", false
		}
		return addr.Unmap().String(), true
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "" || len(host) > 253 || strings.Contains(host, "..") || host[0] == '.' || host[0] == '-' {
		return "", false
	}
	for i := range len(host) {
		c := host[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '.' && c != '-' && c != '_' {
			return "", false
		}
	}
	return host, true
}

// numeric distinguishes addresses from names, including forms of addresses that
// only some resolvers accept: 2130706433, 0x7f.1, 127.1.
func numeric(host string) bool {
	if strings.Contains(host, ":") {
		return true
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	if strings.HasPrefix(last, "0x") {
		return true
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}

// matches reports whether the pattern matches this host and port. usual are
// the ports that a pattern without a port matches.
func (p hostPattern) matches(host, port string, usual ...string) bool {
	if p.port != port && (p.port != "" || !slices.Contains(usual, port)) {
		return false
	}
	switch {
	case !p.wildcard:
		return p.host == host
	case numeric(host):
		return false
	case p.host == "":
		return true
	default:
		return strings.HasSuffix(host, "."+p.host)
	}
}

// allows reports whether the host may be reached on the port.
func (r *ruleset) allows(host, port string) bool {
	return slices.ContainsFunc(r.patterns, func(p hostPattern) bool { return p.matches(host, port, "80", "443") })
}

// allowsPrivate reports whether the rules name exactly this host and
// port, so that its address need not be public.
func (r *ruleset) allowsPrivate(host, port string) bool {
	return slices.ContainsFunc(r.patterns, func(p hostPattern) bool { return !p.wildcard && p.host == host && p.port == port })
}

// intercepts reports whether the requests inside a tunnel to the host must be read.
func (r *ruleset) intercepts(host, port string) bool {
	return slices.ContainsFunc(r.secrets, func(s secretRule) bool { return s.isFor(host, port) })
}

func (s secretRule) isFor(host, port string) bool {
	return slices.ContainsFunc(s.patterns, func(p hostPattern) bool { return p.matches(host, port, "443") })
}

// target is where one request goes.
type target struct {
	host, port string // canonical
	tls        bool
}

func (t target) String() string { return net.JoinHostPort(t.host, t.port) }

// display returns it as people write it: without the default port.
func (t target) display() string {
	if t.port == "80" || t.port == "443" {
		if strings.Contains(t.host, ":") {
			return "[" + t.host + "]"
		}
		return t.host
	}
	return t.String()
}

// mayCarry reports whether a secret may be inserted into a request to the target: only to its
// hosts, and unencrypted only if the rules name a port other than that of HTTPS.
func (s secretRule) mayCarry(t target) bool {
	return s.isFor(t.host, t.port) && (t.tls || t.port != "443")
}

// parseTarget parses host:port. An empty port means the scheme's.
func parseTarget(hostport string, tls bool) (target, bool) {
	t := target{tls: tls, port: "80"}
	if tls {
		t.port = "443"
	}
	host := hostport
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		host, t.port = host[:i], host[i+1:]
		if !validPort(t.port) {
			return target{}, false
		}
	}
	var ok bool
	t.host, ok = canonical(host)
	return t, ok
}
