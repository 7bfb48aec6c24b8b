package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"xabar/chat"
	"xabar/gateway/auth"
	"xabar/gateway/engineio"
	"xabar/gateway/notify/telegram"
	"xabar/gateway/notify/webhook"
	"xabar/gateway/notify/webpush"
)

// envPrefix begins the environment variable of every setting: --data-dir is
// XABAR_DATA_DIR.
const envPrefix = "XABAR"

// Storage says where data is kept. Every command that touches data has it.
type Storage struct {
	DataDir     string `default:"xabar-data" placeholder:"DIR" help:"Folder for the embedded database and the demo key; made if it is missing."`
	DatabaseURL string `name:"database-url" placeholder:"URL" help:"sqlite:PATH or postgres://user:password@host/database. Default: sqlite:xabar.db in the data folder."`
}

// url is DatabaseURL with its default filled in. A relative SQLite path is taken from
// where the program runs, the default from the data folder.
func (s Storage) url() string {
	if s.DatabaseURL != "" {
		return s.DatabaseURL
	}
	return "sqlite:" + filepath.Join(s.DataDir, "xabar.db")
}

// KeySettings say who signs tokens.
type KeySettings struct {
	JWTSecret        string `name:"jwt-secret" placeholder:"SECRET" help:"Accept tokens signed with this secret (HS256). 32 random bytes or more."`
	JWTPublicKey     string `name:"jwt-public-key" placeholder:"PEM|FILE" help:"Accept tokens signed with the private half of these PEM keys: RSA (RS256), P-256 (ES256), Ed25519 (EdDSA)."`
	JWKSURL          string `name:"jwks-url" placeholder:"URL" help:"Accept tokens signed with a key of this JSON Web Key Set."`
	JWTIssuer        string `name:"jwt-issuer" placeholder:"NAME" help:"What the iss of tokens must be. Default: anything."`
	JWTAudience      string `name:"jwt-audience" placeholder:"NAME" help:"What the aud of tokens must hold. Default: anything."`
	JWTAllowNoExpiry bool   `name:"jwt-allow-no-expiry" help:"Accept tokens without exp: they are good until they are revoked."`
}

// Logging says what is logged, to stderr.
type Logging struct {
	LogLevel  slog.Level `default:"info" placeholder:"LEVEL" help:"debug, info, warn or error."`
	LogFormat string     `default:"auto" enum:"auto,json,text" placeholder:"FORMAT" help:"json, text, or auto: text on a terminal, else json."`
}

// Config is everything that can be set: the one source of the flags, the
// environment variables, the table in the README and check-config.
type Config struct {
	Listen      string `default:"127.0.0.1:3000" placeholder:"ADDRESS" help:"Address for clients."`
	AdminListen string `default:"127.0.0.1:3001" placeholder:"ADDRESS" help:"Address for /healthz, /readyz, /metrics and /debug/pprof. Keep it private."`
	Storage
	Migrate bool `default:"true" negatable:"" help:"Bring the database's schema up to date at the start; with --no-migrate an older one is refused."`
	KeySettings
	RedisURL           string        `name:"redis-url" placeholder:"URL" help:"redis://user:password@host:6379/0 (rediss:// for TLS; ?master_name=NAME for Sentinel, ?cluster=true for Cluster): share rooms, presence and messages with other nodes. Needs PostgreSQL."`
	RedisSharded       bool          `help:"Use the sharded pub/sub of Redis 7 (wire format of createShardedAdapter). The same on all nodes."`
	PresenceTTL        time.Duration `name:"presence-ttl" default:"30s" placeholder:"TIME" help:"With Redis: how long the users of a node that died count as online."`
	DrainTimeout       time.Duration `name:"drain-timeout" default:"30s" placeholder:"TIME" help:"Within this time after SIGTERM the process has ended: 1s to 10m. What would kill it should wait longer."`
	NodeName           string        `placeholder:"NAME" help:"Name of this node at the start of its sessions' ids, by which a proxy finds it: letters, digits, - and _."`
	ServerKey          string        `placeholder:"KEY" help:"What your own server shows to use /admin. Without it there is no /admin."`
	AllowedOrigins     []string      `placeholder:"ORIGIN" help:"Web origins that may connect besides the server's own: https://example.org, https://*.example.org, or *."`
	AllowEIO3          bool          `name:"allow-eio3" env:"XABAR_ALLOW_EIO3" help:"Let Socket.IO 2 clients (Engine.IO 3) connect."`
	TrustedProxies     []string      `placeholder:"NETWORK" help:"Proxies whose X-Forwarded-* headers are believed, as addresses or networks (10.0.0.0/8)."`
	DialectDir         string        `placeholder:"DIR" help:"Folder of event dialects (.yaml) beside the shipped ones: docs/guides/dialects.md."`
	AckTimeout         time.Duration `default:"1s" placeholder:"TIME" help:"How long a device has to acknowledge a message."`
	NotifyWait         time.Duration `default:"20s" placeholder:"TIME" help:"How long a message has to arrive before its recipient is notified: 10s to 30s."`
	QuietHoursDefault  Quiet         `default:"off" placeholder:"HOURS" help:"Quiet hours of users who have set none, like 22:00-07:00 Asia/Tashkent, or off."`
	VAPIDSubject       string        `name:"vapid-subject" placeholder:"URL" help:"Turns Web Push on: how push services reach you, mailto:admin@example.org or an https URL. On in demo mode."`
	PushPrivate        bool          `name:"push-private" help:"Let push services of browsers be at private addresses, for tests and closed networks."`
	TelegramToken      string        `placeholder:"TOKEN" help:"Turns Telegram on: the token of your bot, from @BotFather."`
	TelegramAPIURL     string        `name:"telegram-api-url" default:"https://api.telegram.org" placeholder:"URL" help:"Bot API server, if not Telegram's own."`
	WebhookURL         string        `name:"webhook-url" placeholder:"URL" help:"Send every notification to this URL, signed with --webhook-secret."`
	WebhookSecret      string        `name:"webhook-secret" placeholder:"SECRET" help:"What webhooks are signed with (Standard Webhooks)."`
	LimitEvents        Rate          `default:"100/s:500" placeholder:"RATE" help:"Events per socket, and HTTP requests per user, as RATE/s:BURST (or /m, /h), or off."`
	LimitSends         Rate          `default:"50/s:300" placeholder:"RATE" help:"Messages per user."`
	LimitConversations Rate          `default:"200/h:200" placeholder:"RATE" help:"Conversations that a user makes."`
	LimitHandshakes    Rate          `default:"50/s:500" placeholder:"RATE" help:"New connections per client address, as RATE/s:BURST, or off."`
	LimitConnections   Count         `default:"20" placeholder:"N" help:"Connections per user on this node, or off."`
	Demo               bool          `help:"Demo mode: anybody can log in with any name (POST /demo/login). On by itself when nothing is configured: no key, database or listening address."`
	DemoPublic         bool          `help:"Let demo mode listen on other addresses than loopback."`
	Logging
	Tracing

	set map[string]bool // names of the flags that were given, as flag or variable
}

// given says whether any of these flags was set, be it to its default or to
// nothing.
func (c *Config) given(names ...string) bool {
	for _, name := range names {
		if c.set[name] {
			return true
		}
	}
	return false
}

// givenFlags are the names of the flags that the command line or the environment
// set. Kong's own Set is also true for defaults.
func givenFlags(k *kong.Context) map[string]bool {
	set := make(map[string]bool)
	for _, element := range k.Path {
		if element.Flag != nil {
			set[element.Flag.Name] = true
		}
	}
	for _, flag := range k.Flags() {
		for _, env := range flag.Envs {
			if _, ok := os.LookupEnv(env); ok {
				set[flag.Name] = true
			}
		}
	}
	return set
}

// resolve fills in what follows from what is set (demo mode) and refuses what can't
// work together. It touches neither network nor disk.
func (c *Config) resolve() error {
	if !c.given("demo", "jwt-secret", "jwt-public-key", "jwks-url", "server-key", "database-url", "redis-url", "listen", "admin-listen") {
		c.Demo = true
	}
	var errs []error
	for _, s := range []struct{ name, value string }{
		{"jwt-secret", c.JWTSecret}, {"jwt-public-key", c.JWTPublicKey}, {"jwks-url", c.JWKSURL},
		{"database-url", c.DatabaseURL}, {"redis-url", c.RedisURL}, {"server-key", c.ServerKey},
		{"vapid-subject", c.VAPIDSubject}, {"telegram-token", c.TelegramToken}, {"webhook-url", c.WebhookURL}, {"webhook-secret", c.WebhookSecret},
	} {
		// A setting that went missing on its way here must not turn into a default.
		if c.given(s.name) && strings.TrimSpace(s.value) == "" {
			errs = append(errs, fmt.Errorf("--%s is set, but empty", s.name))
		}
	}
	if c.RedisURL != "" && strings.HasPrefix(c.url(), "sqlite:") {
		errs = append(errs, errors.New("--redis-url is for several nodes, and they need one PostgreSQL: set --database-url postgres://… too"))
	}
	if c.DataDir == "" {
		errs = append(errs, errors.New("--data-dir is empty"))
	}
	if !c.Demo && !c.given("jwt-secret", "jwt-public-key", "jwks-url") {
		errs = append(errs, errors.New("there is no key to check tokens with: set --jwt-secret, --jwt-public-key or --jwks-url, or try --demo"))
	}
	if c.PresenceTTL < 5*time.Second || c.PresenceTTL > 10*time.Minute {
		errs = append(errs, errors.New("--presence-ttl must be from 5s to 10m"))
	}
	if c.DrainTimeout < time.Second || c.DrainTimeout > 10*time.Minute {
		errs = append(errs, errors.New("--drain-timeout must be from 1s to 10m"))
	}
	if c.AckTimeout < 10*time.Millisecond || c.AckTimeout > time.Minute {
		errs = append(errs, errors.New("--ack-timeout must be from 10ms to 1m"))
	}
	errs = append(errs, c.checkAddresses()...)
	errs = append(errs, c.checkNotifications()...)
	errs = append(errs, c.checkTracing())
	for _, origin := range c.AllowedOrigins {
		if !isOrigin(origin) {
			errs = append(errs, fmt.Errorf("--allowed-origins: %q is not an origin like https://example.org", origin))
		}
	}
	if _, err := c.trustedProxies(); err != nil {
		errs = append(errs, err)
	}
	if !engineio.ValidSessionPrefix(c.NodeName) {
		errs = append(errs, fmt.Errorf("--node-name: %q has other characters than letters, digits, - and _, or more than 64", c.NodeName))
	}
	return errors.Join(errs...)
}

func (c *Config) checkNotifications() (errs []error) {
	if c.NotifyWait < 10*time.Second || c.NotifyWait > 30*time.Second {
		errs = append(errs, errors.New("--notify-wait must be from 10s to 30s"))
	}
	for _, s := range []struct {
		name, value string
		check       func(string) error
	}{
		{"vapid-subject", c.VAPIDSubject, webpush.CheckSubject}, {"webhook-url", c.WebhookURL, webhook.CheckURL},
		{"telegram-token", c.TelegramToken, telegram.CheckToken}, {"telegram-api-url", c.TelegramAPIURL, telegram.CheckAPIURL},
	} {
		if s.value != "" {
			if err := s.check(s.value); err != nil {
				errs = append(errs, fmt.Errorf("--%s: %w", s.name, err))
			}
		}
	}
	switch _, err := webhook.Key(c.WebhookSecret); {
	case (c.WebhookURL == "") != (c.WebhookSecret == ""):
		errs = append(errs, errors.New("--webhook-url and --webhook-secret go together"))
	case c.WebhookSecret != "" && err != nil:
		errs = append(errs, fmt.Errorf("--webhook-secret: %w", err))
	}
	return errs
}

// vapidSubject is empty where Web Push is off.
func (c *Config) vapidSubject() string {
	if c.VAPIDSubject == "" && c.Demo {
		return "mailto:demo@xabar.invalid"
	}
	return c.VAPIDSubject
}

func (c *Config) checkAddresses() (errs []error) {
	for _, a := range []struct{ name, value string }{{"listen", c.Listen}, {"admin-listen", c.AdminListen}} {
		host, _, err := net.SplitHostPort(a.value)
		if err != nil {
			errs = append(errs, fmt.Errorf("--%s: %q is not host:port", a.name, a.value))
			continue
		}
		if c.Demo && !c.DemoPublic && !isLoopback(host) {
			errs = append(errs, fmt.Errorf("--%s: demo mode lets anybody in and listens on loopback only, not on %q; --demo-public allows it", a.name, a.value))
		}
	}
	if c.DemoPublic && !c.Demo {
		errs = append(errs, errors.New("--demo-public means nothing without --demo"))
	}
	return errs
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// isOrigin says whether a browser could send this (or a pattern of it) as Origin: a
// scheme and a host, no path.
func isOrigin(s string) bool {
	if s == "*" {
		return true
	}
	u, err := url.Parse(strings.Replace(s, "://*.", "://any.", 1))
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" &&
		u.Path == "" && u.RawQuery == "" && u.Fragment == "" && u.User == nil
}

func (c *Config) trustedProxies() ([]netip.Prefix, error) {
	var prefixes []netip.Prefix
	for _, text := range c.TrustedProxies {
		if ip, err := netip.ParseAddr(text); err == nil {
			prefixes = append(prefixes, netip.PrefixFrom(ip, ip.BitLen()))
			continue
		}
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("--trusted-proxies: %q is neither an address nor a network", text)
		}
		prefixes = append(prefixes, prefix)
	}
	return prefixes, nil
}

// minServerKey is the length from which a key of random bytes can't be guessed.
const minServerKey = 16

// warnings are what an operator should know about a configuration that works.
func (c *Config) warnings() []string {
	var all []string
	if c.Demo {
		all = append(all, "demo mode: anybody who reaches this address can log in as anybody")
	}
	if c.ServerKey != "" && len(c.ServerKey) < minServerKey {
		all = append(all, fmt.Sprintf("--server-key has %d bytes; whoever guesses it can read and erase everything: use %d random ones or more", len(c.ServerKey), minServerKey))
	}
	if c.JWTSecret != "" && len(c.JWTSecret) < auth.StrongSecretBytes {
		all = append(all, fmt.Sprintf("--jwt-secret has %d bytes; with fewer than %d it can be guessed from any token", len(c.JWTSecret), auth.StrongSecretBytes))
	}
	return all
}

// keys makes the keys that tokens are checked with. In demo mode without a secret
// that includes the demo key. ctx ends the refreshing of a key set.
func (c *Config) keys(ctx context.Context, log *slog.Logger) (*auth.Keys, error) {
	keys := auth.NewKeys()
	if c.JWTSecret != "" {
		if err := keys.AddSecret([]byte(c.JWTSecret)); err != nil {
			return nil, fmt.Errorf("--jwt-secret: %w", err)
		}
	}
	if c.JWTPublicKey != "" {
		text, err := pemText(c.JWTPublicKey)
		if err == nil {
			err = keys.AddPublicKeys(text)
		}
		if err != nil {
			return nil, fmt.Errorf("--jwt-public-key: %w", err)
		}
	}
	if c.JWKSURL != "" {
		if err := keys.AddJWKS(ctx, c.JWKSURL, log); err != nil {
			return nil, fmt.Errorf("--jwks-url: %w", err)
		}
	}
	if c.Demo && c.JWTSecret == "" {
		key, err := demoKey(c.DataDir)
		if err == nil {
			err = keys.AddSecret(key)
		}
		if err != nil {
			return nil, fmt.Errorf("demo key: %w", err)
		}
	}
	return keys, nil
}

// authOptions say what is asked of a token beside its signature.
func (k KeySettings) authOptions(revoked *chat.Revocations) auth.Options {
	return auth.Options{
		Revocations: revoked, Issuer: k.JWTIssuer, Audience: k.JWTAudience, AllowNoExpiry: k.JWTAllowNoExpiry,
	}
}

// signingSecret is what this node mints tokens with.
func signingSecret(jwtSecret, dataDir string) ([]byte, error) {
	if jwtSecret != "" {
		return []byte(jwtSecret), nil
	}
	return demoKey(dataDir)
}

// pemText is the setting itself if it is PEM, else the file that it names.
func pemText(setting string) ([]byte, error) {
	if strings.Contains(setting, "-----BEGIN") {
		return []byte(setting), nil
	}
	return os.ReadFile(setting)
}
