package outbound

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"syscall"
)

// ErrPrivate says that an address is not one of the public internet: it may be this
// machine, a neighbour's, or a cloud's metadata service.
var ErrPrivate = errors.New("not a public address")

// special are networks that netip does not know as private, loopback, link-local or
// multicast, and that still are not the public internet (IANA's special-purpose
// address registries).
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("192.88.99.0/24"), netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("100::/64"), netip.MustParsePrefix("2001::/23"),
	netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("3fff::/20"),
	netip.MustParsePrefix("5f00::/16"), netip.MustParsePrefix("fec0::/10"),
}

// nat64 holds IPv4 addresses, which networks without IPv4 of their own reach so.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// Public says whether an address is one of the public internet.
func Public(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	if nat64.Contains(ip) {
		bytes := ip.As16()
		return Public(netip.AddrFrom4([4]byte(bytes[12:])))
	}
	if !ip.IsGlobalUnicast() || ip.IsPrivate() {
		return false
	}
	for _, network := range special {
		if network.Contains(ip) {
			return false
		}
	}
	return true
}

// CheckEndpoint says what is wrong with a URL that a user names as one to be called:
// it must be https, on a host that may be public. What a name resolves to is looked
// at when it is called.
func CheckEndpoint(endpoint string, publicOnly bool) error {
	u, err := url.Parse(endpoint)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "" || u.Opaque != "":
		return errors.New("not a URL")
	case u.User != nil || u.Fragment != "":
		return errors.New("a URL with a user or a fragment")
	case u.Scheme != "https" && (publicOnly || u.Scheme != "http"):
		return errors.New("not an https URL")
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && publicOnly && !Public(ip) {
		return ErrPrivate
	}
	return nil
}

// refusePrivate looks at the address that is about to be dialled, so that no name
// resolves around it.
func refusePrivate(_ context.Context, _, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %q", ErrPrivate, address)
	}
	if !Public(at.Addr()) {
		return fmt.Errorf("%w: %s", ErrPrivate, at.Addr())
	}
	return nil
}
