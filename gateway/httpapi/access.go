package httpapi

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"net/netip"
	"strings"

	"github.com/labstack/echo/v4"

	"xabar/chat"
)

const actorKey = "actor"

// actor is the caller of an operation that takes a token.
func actor(c echo.Context) chat.Actor { return c.Get(actorKey).(chat.Actor) }

// admitOrigin refuses pages of foreign origins and answers preflights.
func (s *server) admitOrigin(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r, h := c.Request(), c.Response().Header()
		if !s.door.AdmitOrigin(h, r) {
			return chat.Errorf(chat.CodeForbidden, "pages of this origin may not call")
		}
		if r.Method != http.MethodOptions || r.Header.Get(echo.HeaderAccessControlRequestMethod) == "" {
			return next(c)
		}
		h.Set(echo.HeaderAccessControlAllowMethods, "GET, POST, PUT, PATCH, DELETE")
		h.Set(echo.HeaderAccessControlAllowHeaders, "Authorization, Content-Type, X-Request-Id")
		h.Set(echo.HeaderAccessControlExposeHeaders, "Retry-After, X-Request-Id")
		h.Set(echo.HeaderAccessControlMaxAge, "600")
		return c.NoContent(http.StatusNoContent)
	}
}

// authenticate finds out who calls, as the operation's security says, and whether
// it calls too often.
func (s *server) authenticate(op *operation, next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		c.Response().Header().Set(echo.HeaderAccessControlExposeHeaders, "Retry-After, X-Request-Id")
		var err error
		switch op.access {
		case accessToken:
			err = s.user(c)
		case accessServerKey:
			err = s.operator(c)
		case accessLogin:
			err = s.stranger(c)
		case accessPublic:
		}
		if err != nil {
			return err
		}
		return next(c)
	}
}

// user checks the token. Whoever has none that is good pays from its address's
// bucket, everybody else from its own.
func (s *server) user(c echo.Context) error {
	who, err := s.auth(c.Request().Context(), bearer(c.Request()))
	if err != nil {
		if code := chat.CodeOf(err); code == chat.CodeUnauthenticated || code == chat.CodeTokenExpired {
			if limited := s.stranger(c); limited != nil {
				return limited
			}
		}
		return err
	}
	if wait, ok := s.requests.Take(who.User.ID); !ok {
		return chat.RateLimited(wait)
	}
	c.Set(actorKey, who)
	return nil
}

// operator checks the server key, in a time that does not tell how much of it was
// right.
func (s *server) operator(c echo.Context) error {
	if s.serverKey == "" {
		return chat.Errorf(chat.CodeNotFound, "the admin API is not switched on")
	}
	given, want := sha256.Sum256([]byte(bearer(c.Request()))), sha256.Sum256([]byte(s.serverKey))
	if subtle.ConstantTimeCompare(given[:], want[:]) == 1 {
		return nil
	}
	if limited := s.stranger(c); limited != nil {
		return limited
	}
	return chat.Errorf(chat.CodeUnauthenticated, "the server key is required")
}

// stranger takes a token from the bucket of the address that calls.
func (s *server) stranger(c echo.Context) error {
	if wait, ok := s.strangers.Take(network(s.door.ClientAddress(c.Request()))); !ok {
		return chat.RateLimited(wait)
	}
	return nil
}

// network is an IPv4 address, or the /64 of an IPv6 one, which one customer holds
// whole. What is no address shares a bucket with its likes.
func network(address string) netip.Prefix {
	addr, err := netip.ParseAddr(address)
	if err != nil {
		return netip.Prefix{}
	}
	addr = addr.Unmap().WithZone("")
	bits := 64
	if addr.Is4() {
		bits = 32
	}
	return netip.PrefixFrom(addr, bits).Masked()
}

// bearer is the request's token, "" if it has none.
func bearer(r *http.Request) string {
	scheme, token, ok := strings.Cut(r.Header.Get(echo.HeaderAuthorization), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}
