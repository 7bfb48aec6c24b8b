package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"

	"github.com/labstack/echo/v4"

	"xabar/chat"
	"xabar/gateway/httpapi/api"
	"xabar/internal/ratelimit"
)

// Bounds of the buckets that are remembered; beyond them the emptiest are forgotten
// first.
const (
	maxLimitedUsers     = 1 << 16
	maxLimitedAddresses = 1 << 16
)

// Door knows who may come from where, for everything on the public address. The
// Engine.IO server is one.
type Door interface {
	// AdmitOrigin says whether a page of the request's Origin may call, and writes
	// CORS headers into h if so.
	AdmitOrigin(h http.Header, r *http.Request) bool
	// ClientAddress is the IP address that the request came from.
	ClientAddress(r *http.Request) string
}

// Public is what the public routes are made of.
type Public struct {
	Service      *chat.Service                                               // required
	Authenticate func(ctx context.Context, token string) (chat.Actor, error) // required
	Door         Door                                                        // required
	Sessions     chat.Sessions                                               // required
	Logger       *slog.Logger                                                // required
	Tracer       chat.Tracer                                                 // nil: nothing is recorded
	// ServerKey is what /admin takes; "" switches it off.
	ServerKey string
	// Demo turns on POST /demo/login; nil leaves it off.
	Demo *Demo
	// Push and Telegram are the channels that users can switch on for themselves; nil:
	// not on this server.
	Push     PushSubscriptions
	Telegram TelegramLinks
	// PushKey is what browsers subscribe with; "" without Push.
	PushKey string
	// Requests limits each user's requests, Strangers those of an address that come
	// without a good token: failed ones, and demo logins.
	Requests, Strangers ratelimit.Rate
}

// server implements the generated api.ServerInterface.
type server struct {
	service   *chat.Service
	auth      func(ctx context.Context, token string) (chat.Actor, error)
	door      Door
	sessions  chat.Sessions
	serverKey string
	demo      *Demo
	push      PushSubscriptions
	pushKey   string
	telegram  TelegramLinks
	requests  *ratelimit.Buckets[chat.ID]
	strangers *ratelimit.Buckets[netip.Prefix]
	bodies    budget
	reference []byte
}

var _ api.ServerInterface = (*server)(nil)

// NewPublic makes the handler of the public address but for Socket.IO.
func NewPublic(p Public) http.Handler {
	s := &server{
		service: p.Service, auth: p.Authenticate, door: p.Door, sessions: p.Sessions,
		serverKey: p.ServerKey, demo: p.Demo, push: p.Push, pushKey: p.PushKey, telegram: p.Telegram,
		requests:  ratelimit.New[chat.ID](p.Requests, maxLimitedUsers),
		strangers: ratelimit.New[netip.Prefix](p.Strangers, maxLimitedAddresses),
		bodies:    budget{left: largeBodies},
		reference: renderReference(loadDocument().spec),
	}
	e := newEcho(p.Logger, p.Tracer)
	e.Use(s.admitOrigin)
	chains := map[string][]echo.MiddlewareFunc{}
	for id, op := range loadDocument().operations {
		chains[id] = []echo.MiddlewareFunc{
			func(next echo.HandlerFunc) echo.HandlerFunc { return s.authenticate(op, next) },
			func(next echo.HandlerFunc) echo.HandlerFunc { return s.validate(op, next) },
		}
	}
	api.RegisterHandlersWithOptions(e, s, api.RegisterHandlersOptions{OperationMiddlewares: chains})
	return e
}
