package netguard

import "net/netip"

// nonPublic are the networks that an untrusted URL must not reach, and why. Addresses
// that are not listed but are not global unicast are refused as well.
var nonPublic = []struct {
	prefix netip.Prefix
	why    string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "this machine"},
	{netip.MustParsePrefix("10.0.0.0/8"), "a private network"},
	{netip.MustParsePrefix("100.64.0.0/10"), "a carrier's inner network"},
	{netip.MustParsePrefix("127.0.0.0/8"), "this machine"},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local, where clouds keep their metadata"},
	{netip.MustParsePrefix("168.63.129.16/32"), "where Azure keeps its metadata"},
	{netip.MustParsePrefix("172.16.0.0/12"), "a private network"},
	{netip.MustParsePrefix("192.0.0.0/24"), "reserved"},
	{netip.MustParsePrefix("192.0.2.0/24"), "for documents only"},
	{netip.MustParsePrefix("192.88.99.0/24"), "reserved"},
	{netip.MustParsePrefix("192.168.0.0/16"), "a private network"},
	{netip.MustParsePrefix("198.18.0.0/15"), "for measurements only"},
	{netip.MustParsePrefix("198.51.100.0/24"), "for documents only"},
	{netip.MustParsePrefix("203.0.113.0/24"), "for documents only"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved"},
	{netip.MustParsePrefix("::1/128"), "this machine"},
	{netip.MustParsePrefix("fc00::/7"), "a private network"},
	{netip.MustParsePrefix("fe80::/10"), "link-local"},
	{netip.MustParsePrefix("ff00::/8"), "multicast"},
	{netip.MustParsePrefix("2001::/23"), "a tunnel or reserved"},
	{netip.MustParsePrefix("2001:db8::/32"), "for documents only"},
	{netip.MustParsePrefix("2002::/16"), "a 6to4 tunnel"},
	{netip.MustParsePrefix("3fff::/20"), "for documents only"},
}

var (
	nat64    = netip.MustParsePrefix("64:ff9b::/96")
	globalV6 = netip.MustParsePrefix("2000::/3")
)

// Closed returns why an address is not public, or "" if it is.
func Closed(addr netip.Addr) string {
	addr = addr.Unmap().WithZone("")
	if nat64.Contains(addr) { // an IPv6-only network reaches IPv4 this way
		b := addr.As16()
		addr = netip.AddrFrom4([4]byte(b[12:16]))
	}
	for _, c := range nonPublic {
		if c.prefix.Contains(addr) {
			return c.why
		}
	}
	if !addr.IsValid() || addr.Is6() && !globalV6.Contains(addr) {
		return "not a public address"
	}
	return ""
}
