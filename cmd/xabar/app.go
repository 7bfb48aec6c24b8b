package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"xabar/chat"
	"xabar/gateway/auth"
	"xabar/gateway/engineio"
	"xabar/gateway/events"
	"xabar/gateway/httpapi"
	"xabar/gateway/socketio"
	"xabar/internal/doctor"
	"xabar/internal/ratelimit"
	"xabar/persistence"
	"xabar/web"
)

// errDrainTimeout is what Run says when parts of the node still run at the deadline.
var errDrainTimeout = errors.New("not everything has ended within --drain-timeout")

// maxPayload is the size of a message or polling body that is accepted, in bytes.
const maxPayload = 1_000_000

// App is a whole node: it makes every component, runs them, and ends them in
// order. Tests start it on port 0.
type App struct {
	cfg      Config
	log      *slog.Logger
	registry *registry
	limited  *prometheus.CounterVec // what limits refuse, by limit
	panics   *prometheus.CounterVec // by where

	store        chat.Store
	sharing      *sharing
	service      *chat.Service
	hub          *events.Hub
	authenticate events.Authenticate
	revoked      *chat.Revocations
	io           *socketio.Server
	health       *httpapi.Health
	notify       *notifications
	restored     restored
	traces       traces

	public, admin               *http.Server
	publicListener, adminListen net.Listener
}

// Addresses are where a node listens, as URLs.
type Addresses struct{ Public, Admin string }

// NewApp opens the store and both addresses. After it, Run must be called. ctx bounds the
// opening and ends the refreshing of a key set.
func NewApp(ctx context.Context, cfg Config, log *slog.Logger) (_ *App, err error) {
	a := &App{cfg: cfg, log: log, registry: newRegistry(), restored: newRestored()}
	a.limited, a.panics = newRefusalMetrics(a.registry)
	// Others may not look into it: it holds the messages and the demo key.
	if err := os.MkdirAll(cfg.DataDir, 0o700); err != nil {
		return nil, fmt.Errorf("--data-dir: %w", err)
	}
	keys, err := cfg.keys(ctx, log)
	if err != nil {
		return nil, err
	}
	if a.traces.tracer, err = cfg.tracer(ctx, log); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			a.traces.close(ctx, log)
		}
	}()
	if a.store, err = persistence.Open(ctx, cfg.url(), persistence.Options{
		Logger: log, Migrate: cfg.Migrate, Observe: newBatchMetrics(a.registry),
	}); err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.store.Close())
		}
	}()
	if a.notify, err = a.openNotifications(ctx); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.notify.Close())
		}
	}()
	if err := a.listen(ctx); err != nil {
		return nil, err
	}
	a.revoked = chat.NewRevocations(a.store, a.closeRevoked, log)
	err = a.revoked.Load(ctx)
	if err == nil {
		err = a.wire(auth.New(keys, a.store, cfg.authOptions(a.revoked)))
	}
	if err != nil {
		return nil, errors.Join(err, a.publicListener.Close(), a.adminListen.Close())
	}
	return a, nil
}

// closeRevoked ends the sockets of a user whom another node revoked.
func (a *App) closeRevoked(event chat.AccessRevoked) {
	if err := a.hub.Publish(context.Background(), event); err != nil {
		a.log.Warn("sockets of a revoked user were not closed", "error", err)
	}
}

func (a *App) listen(ctx context.Context) (err error) {
	// Without TCP's own probes: Engine.IO's heartbeat finds dead peers, and the server's times find those of
	// HTTP. They would be four system calls for each connection, and a packet each 15 s.
	config := net.ListenConfig{KeepAlive: -1}
	if a.publicListener, err = config.Listen(ctx, "tcp", a.cfg.Listen); err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	if a.adminListen, err = config.Listen(ctx, "tcp", a.cfg.AdminListen); err != nil {
		return errors.Join(fmt.Errorf("--admin-listen: %w", err), a.publicListener.Close())
	}
	return nil
}

// wire makes everything between the store and the listeners.
func (a *App) wire(authenticator *auth.Authenticator) error {
	var err error
	a.authenticate = authenticator.Authenticate
	if a.sharing, err = a.share(func() *chat.Service { return a.service }); err != nil {
		return err
	}
	a.service = chat.NewService(chat.ServiceConfig{
		Store: a.store, Broadcaster: a.sharing.broadcaster, Presence: a.sharing.presence, Logger: a.log,
		Revocations: a.revoked, Absences: a.notify.absences(a),
		Sends: a.userLimit("sends", a.cfg.LimitSends), Opens: a.userLimit("conversations", a.cfg.LimitConversations),
	})
	proxies, err := a.cfg.trustedProxies()
	if err != nil {
		return err
	}
	a.io = socketio.NewServer(socketio.Options{
		Options: engineio.Options{
			MaxPayload:     maxPayload,
			AllowEIO3:      a.cfg.AllowEIO3,
			Origins:        a.cfg.AllowedOrigins,
			TrustedProxies: proxies,
			SessionPrefix:  a.cfg.NodeName,
			AllowRequest:   a.admit,
			HandshakeRate:  a.cfg.LimitHandshakes.PerSecond,
			HandshakeBurst: a.cfg.LimitHandshakes.Burst,
			Logger:         a.log,
			Metrics:        newEngineMetrics(a.registry, a.limited, a.panics),
		},
		Adapter: a.sharing.adapter,
		Hooks:   newSocketHooks(a.registry, a.panics),
	})
	a.hub.Attach(a.service, a.sharing.presence, a.io.Namespace)
	a.registerNodeMetrics()
	a.traces.register(a.registry)
	registerStoreMetrics(a.registry, a.store, a.notify.scheduler != nil)

	checks := []httpapi.Check{{Name: "store", Required: true, Probe: a.store.Ping}}
	if redis := a.sharing.redis; redis != nil {
		checks = append(checks, httpapi.Check{Name: "redis", Probe: probeRedis(redis)})
	}
	a.health = httpapi.NewHealth(a.log, checks...)
	publicRoutes, err := a.publicRoutes(a.service, authenticator)
	if err != nil {
		return err
	}
	a.public = a.newHTTPServer(publicRoutes)
	a.admin = a.newHTTPServer(httpapi.NewAdmin(a.health, a.registry, a.log))
	return nil
}

// admit turns new connections away while the node drains, with a status at which a balancer tries
// another node. Sessions that exist go on until they are closed.
func (a *App) admit(*http.Request) error {
	if a.hub.Draining() {
		return &engineio.RefuseError{Status: http.StatusServiceUnavailable, Message: "draining"}
	}
	return nil
}

// userLimit makes a bucket for each user.
func (a *App) userLimit(name string, rate Rate) chat.Limiter {
	const users = 1 << 16 // that are remembered
	return countedLimit{ratelimit.New[chat.ID](ratelimit.Rate(rate), users), a.limited.WithLabelValues(name)}
}

// publicRoutes is Socket.IO and the HTTP routes beside it.
func (a *App) publicRoutes(service *chat.Service, authenticator *auth.Authenticator) (http.Handler, error) {
	routes := httpapi.Public{
		Service: service, Authenticate: authenticator.Authenticate, Door: a.io.Engine(), Sessions: a.hub,
		Logger: a.log, Tracer: a.traces.port(), ServerKey: a.cfg.ServerKey,
		Requests: ratelimit.Rate(a.cfg.LimitEvents), Strangers: ratelimit.Rate(a.cfg.LimitHandshakes),
	}
	if a.cfg.Demo {
		secret, err := signingSecret(a.cfg.JWTSecret, a.cfg.DataDir)
		if err != nil {
			return nil, err
		}
		routes.Demo = &httpapi.Demo{Users: a.store, Minter: auth.NewMinter(secret, nil).For(a.cfg.JWTIssuer, a.cfg.JWTAudience)}
	}
	offerChannels(&routes, a.notify.channels)
	mux := http.NewServeMux()
	mux.Handle("/socket.io/", a.io)
	mux.Handle("GET "+doctor.SeenPath, doctor.SeenHandler(a.cfg.ServerKey, rand.Text(), a.io.Engine().ClientAddress))
	mux.Handle("/", measured(a.registry, httpapi.NewPublic(routes)))
	return mux, web.Mount(mux, web.Config{Demo: a.cfg.Demo})
}

// newHTTPServer has no WriteTimeout: a polling request waits as long as a heartbeat
// takes, and the engine bounds it.
func (a *App) newHTTPServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(a.log.Handler(), slog.LevelDebug),
	}
}

// Addresses are known from the start, also for port 0.
func (a *App) Addresses() Addresses {
	return Addresses{
		Public: "http://" + a.publicListener.Addr().String(),
		Admin:  "http://" + a.adminListen.Addr().String(),
	}
}

// Run serves until ctx ends or a part fails, then drains and returns when
// everything has ended, at the latest after --drain-timeout: what still runs then ends
// with the process (errDrainTimeout). Ending by ctx is no error.
func (a *App) Run(ctx context.Context) error {
	// The hub outlives ctx: while connections drain, what they sent is still
	// stored, answered and delivered.
	hubCtx, stopHub := context.WithCancel(context.WithoutCancel(ctx))
	defer stopHub()
	group, failed := errgroup.WithContext(ctx)
	redisCtx, stopRedis := context.WithCancel(hubCtx)
	defer stopRedis()
	group.Go(func() error { return a.hub.Run(hubCtx) })
	shared := make(chan struct{})
	if redis := a.sharing.redis; redis != nil {
		group.Go(func() error {
			defer close(shared)
			return redis.Run(redisCtx)
		})
	} else {
		close(shared)
	}
	group.Go(func() error { return a.revoked.Run(failed) })
	group.Go(func() error { return a.restored.run(failed) })
	notifyCtx, stopNotify := context.WithCancel(hubCtx)
	defer stopNotify()
	notified := make(chan struct{})
	group.Go(func() error {
		defer close(notified)
		return a.notify.Run(notifyCtx)
	})
	group.Go(func() error { return serve(a.public, a.publicListener) })
	group.Go(func() error { return serve(a.admin, a.adminListen) })
	addresses := a.Addresses()
	a.log.Info("listening", "url", addresses.Public, "admin_url", addresses.Admin, "version", version(), "demo", a.cfg.Demo)

	<-failed.Done()
	deadline := time.Now().Add(a.cfg.DrainTimeout)
	ended := make(chan error, 1)
	go func() {
		drainErr := a.drain(context.WithoutCancel(ctx), stops{
			hub:    stopHub,
			notify: func(context.Context) { stopNotify(); <-notified },
			redis: func(ctx context.Context) {
				stopRedis()
				select { // presence stores last times at its end
				case <-shared:
				case <-ctx.Done():
				}
			},
		})
		err := errors.Join(group.Wait(), drainErr)
		// The last spans have ended. What can't be sent with the time that is left is lost.
		ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline.Add(-a.cfg.DrainTimeout/10))
		defer cancel()
		a.traces.close(ctx, a.log)
		ended <- err
	}()
	limit := time.NewTimer(a.cfg.DrainTimeout)
	defer limit.Stop()
	select {
	case err := <-ended:
		return err
	case <-limit.C:
		return errDrainTimeout
	}
}

// serve returns nil when the server was shut down.
func serve(server *http.Server, listener net.Listener) error {
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// stops end parts of a running App; those with a context wait until the part has ended.
type stops struct {
	hub           func()
	notify, redis func(context.Context)
}

// drain ends the node in the order in which nothing is lost: not ready, clients sent
// elsewhere, connections closed, requests finished, what is queued stored, and last the
// address on which all this could be watched.
func (a *App) drain(ctx context.Context, stop stops) error {
	start := time.Now()
	a.log.Info("draining", "connections", a.io.Engine().Sockets())
	// What it cuts off has the rest of the time to end.
	ctx, cancel := context.WithTimeout(ctx, a.cfg.DrainTimeout*4/5)
	defer cancel()
	a.health.Drain()
	var errs []error
	step := func(name string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	step("drain sockets", a.hub.Drain(ctx))
	step("close connections", a.io.Shutdown(ctx))
	step("finish requests", a.public.Shutdown(ctx))
	step("finish sends", a.service.Settle(ctx))
	stop.notify(ctx)
	step("close the queue of notifications", a.notify.Close())
	stop.redis(ctx)
	step("store who was here last", a.sharing.close())
	step("close the store", a.store.Close())
	stop.hub()
	step("close the admin address", a.admin.Shutdown(ctx))
	a.log.Info("stopped", "took", time.Since(start).Round(time.Millisecond).String())
	return errors.Join(errs...)
}
