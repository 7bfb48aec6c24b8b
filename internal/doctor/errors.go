package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// short is what went wrong, without what drivers say around it.
func short(err error) string {
	var answer *pgconn.PgError
	if errors.As(err, &answer) {
		return answer.Message
	}
	var name *net.DNSError
	if errors.As(err, &name) {
		return "the name " + name.Name + " cannot be resolved"
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return "no answer in time"
	}
	var untrusted *tls.CertificateVerificationError
	if errors.As(err, &untrusted) {
		return untrusted.Error()
	}
	var network *net.OpError
	if errors.As(err, &network) {
		return network.Error()
	}
	var request *url.Error // it repeats the URL, which may hold a token
	if errors.As(err, &request) {
		return request.Err.Error()
	}
	return err.Error()
}

// isCertificate says that TLS failed because of whom the other side claims to be.
func isCertificate(err error) bool {
	var untrusted *tls.CertificateVerificationError
	return errors.As(err, &untrusted) || errors.As(err, new(x509.UnknownAuthorityError)) || errors.As(err, new(x509.HostnameError))
}

// isPublicAddress says that what goes to it unencrypted may be read on the way.
func isPublicAddress(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && !ip.Unmap().IsPrivate() && !ip.Unmap().IsLoopback() && !ip.Unmap().IsLinkLocalUnicast()
}

// median of durations; 0 of none.
func median(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

// rounded is a duration as people say it.
func rounded(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return d.Round(time.Second).String()
	case d >= 10*time.Millisecond:
		return d.Round(time.Millisecond).String()
	default:
		return d.Round(10 * time.Microsecond).String()
	}
}
