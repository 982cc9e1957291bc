package netguard

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
)

func TestClosed(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.0.1", "169.254.169.254", "168.63.129.16", "172.16.0.1", "172.31.255.255",
		"192.0.0.1", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255",
		"240.0.0.1", "255.255.255.255",
		"::", "::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b::10.1.2.3", "64:ff9b:1::1",
		"2002:7f00:1::", "2002:a00:1::1", "2001::1", "2001:db8::1", "3fff::1", "fc00::1", "fd12:3456::1", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "100::1", "4000::1",
	} {
		if Closed(netip.MustParseAddr(addr)) == "" {
			t.Errorf("%s counts as public", addr)
		}
	}
	if Closed(netip.Addr{}) == "" {
		t.Error("no address counts as public")
	}
	for _, addr := range []string{"1.1.1.1", "93.184.215.14", "100.63.255.255", "100.128.0.1", "172.32.0.1", "169.253.0.1", "2606:4700::1111", "2a00:1450::1",
		"::ffff:1.1.1.1", "64:ff9b::1.1.1.1"} {
		if why := Closed(netip.MustParseAddr(addr)); why != "" {
			t.Errorf("%s: %s", addr, why)
		}
	}
}

func FuzzClosed(f *testing.F) {
	f.Add([]byte{127, 0, 0, 1})
	f.Add(netip.MustParseAddr("64:ff9b::a00:1").AsSlice())
	f.Fuzz(func(t *testing.T, raw []byte) {
		addr, ok := netip.AddrFromSlice(raw)
		if !ok || Closed(addr) != "" {
			return
		}
		plain := addr.Unmap()
		if plain.IsLoopback() || plain.IsPrivate() || plain.IsMulticast() || plain.IsLinkLocalUnicast() || plain.IsUnspecified() {
			t.Errorf("%s counts as public", addr)
		}
	})
}

// TestAddressIsCheckedOnConnect: even code that hands a private address to the dialer does not get through.
func TestAddressIsCheckedOnConnect(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var g Guard
	if conn, err := g.dial(t.Context(), "tcp", l.Addr().String(), false); !errors.Is(err, ErrRefused) {
		t.Errorf("%v %v", conn, err)
	}
	conn, err := g.dial(t.Context(), "tcp", l.Addr().String(), true)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}

// TestNames: of a name's addresses the public ones are dialled, the others only if
// the host is allowed.
func TestNames(t *testing.T) {
	t.Parallel()
	var dialled []string
	g := Guard{
		Allow: func(host, port string) bool { return host == "nas.lan" && port == "8080" },
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("10.0.0.5"), netip.MustParseAddr("93.184.215.14")}, nil
		},
		Dial: func(_ context.Context, _, address string) (net.Conn, error) {
			dialled = append(dialled, address)
			ours, _ := net.Pipe()
			return ours, nil
		},
	}
	for _, test := range []struct{ ask, want string }{
		{"nas.lan:8080", "10.0.0.5:8080"}, {"NAS.lan.:8080", "10.0.0.5:8080"}, {"nas.lan:80", "93.184.215.14:80"}, {"other.example:443", "93.184.215.14:443"},
		{"10.0.0.5:80", ""}, {"[::1]:80", ""}, {"no port", ""},
	} {
		dialled = nil
		_, err := g.DialContext(t.Context(), "tcp", test.ask)
		switch {
		case test.want == "" && (err == nil || len(dialled) > 0):
			t.Errorf("%s: dialled %v", test.ask, dialled)
		case test.want != "" && (err != nil || len(dialled) != 1 || dialled[0] != test.want):
			t.Errorf("%s: dialled %v, %v", test.ask, dialled, err)
		}
	}
	none := Guard{Resolve: func(context.Context, string) ([]netip.Addr, error) { return nil, nil }}
	if _, err := none.DialContext(t.Context(), "tcp", "empty.example:80"); err == nil {
		t.Error("a name without addresses was connected to")
	}
}
