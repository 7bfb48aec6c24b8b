package rooms

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// ioTimeout bounds a dial, a write and the wait for an answer, unless the URL says otherwise:
// a Redis that hangs is noticed well within the 10 s that Health promises.
const ioTimeout = 2 * time.Second

// server is how to reach Redis: commands through client; pub/sub connections are dialed
// with the options that conn gives.
type server struct {
	client redis.UniversalClient
	// conn are the options of one connection, without its address: TLS and credentials.
	conn redis.Options
	// master finds the address of the master (Sentinel), of the one server, or of a
	// master of the cluster.
	master func(ctx context.Context) (string, error)
	// cluster is client if that is a cluster, else nil.
	cluster *redis.ClusterClient
	// sentinel: master is found by asking Sentinels.
	sentinel bool
}

// parseURL knows three kinds of deployment, in the syntax of go-redis:
//
//	redis://user:password@host:6379/0                              one server; rediss:// with TLS, unix:///path
//	redis://host:26379?master_name=NAME&addr=host2:26379           Sentinels; user:password@ is theirs, the
//	                                                               servers' is ?username=…&password=…
//	redis://user:password@host:6379?cluster=true&addr=host2:6379   Cluster; addr alone says so too
//
// Timeouts and pool sizes can be set as go-redis documents for ParseURL, ParseFailoverURL and
// ParseClusterURL.
func parseURL(text string) (*server, error) {
	u, err := url.Parse(text)
	if err != nil {
		// url.Error repeats the URL, which holds a password.
		return nil, errors.New("rooms: the Redis URL cannot be parsed")
	}
	if u.Scheme != "unix" && u.Host == "" {
		return nil, fmt.Errorf("rooms: the Redis URL names no host: use redis://HOST:PORT")
	}
	query := u.Query()
	cluster := query.Get("cluster")
	query.Del("cluster")
	if cluster != "" && cluster != "true" {
		return nil, fmt.Errorf("rooms: cluster=%s in the Redis URL: only cluster=true is known", cluster)
	}
	u.RawQuery = query.Encode()
	var s *server
	switch {
	case query.Has("master_name"):
		if cluster != "" {
			return nil, errors.New("rooms: the Redis URL asks for Sentinel (master_name) and Cluster at once")
		}
		s, err = sentinelServer(u.String())
	case cluster != "" || query.Has("addr"):
		s, err = clusterServer(u.String())
	default:
		s, err = singleServer(u.String())
	}
	if err != nil {
		return nil, fmt.Errorf("rooms: the Redis URL: %w", err)
	}
	return s, nil
}

// orProtocol2 has answers come in RESP2 unless the URL says otherwise: nothing here needs RESP3, in
// which the client looks for pushed messages before each answer, and each publication has one.
func orProtocol2(protocol *int) {
	if *protocol == 0 {
		*protocol = 2
	}
}

func orTimeout(d *time.Duration) {
	if *d == 0 {
		*d = ioTimeout
	}
}

// noNotifications switches off what only Redis Enterprise speaks.
func noNotifications() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

func singleServer(text string) (*server, error) {
	o, err := redis.ParseURL(text)
	if err != nil {
		return nil, err
	}
	orTimeout(&o.DialTimeout)
	orTimeout(&o.ReadTimeout)
	orTimeout(&o.WriteTimeout)
	orProtocol2(&o.Protocol)
	o.MaxRetries = -1 // who calls knows whether to repeat
	o.ContextTimeoutEnabled = true
	o.DialerRetries = 1
	o.MaintNotificationsConfig = noNotifications()
	o.Dialer = dialer(*o)
	addr := o.Addr
	return &server{
		client: redis.NewClient(o), conn: connOptions(*o),
		master: func(context.Context) (string, error) { return addr, nil },
	}, nil
}

// connOptions are the parts of o that a pub/sub connection is made with.
func connOptions(o redis.Options) redis.Options {
	return redis.Options{
		Network: o.Network, TLSConfig: o.TLSConfig, Username: o.Username, Password: o.Password,
		DialTimeout: o.DialTimeout, WriteTimeout: o.WriteTimeout,
	}
}

func clusterServer(text string) (*server, error) {
	o, err := redis.ParseClusterURL(text)
	if err != nil {
		return nil, err
	}
	orTimeout(&o.DialTimeout)
	orTimeout(&o.ReadTimeout)
	orTimeout(&o.WriteTimeout)
	orProtocol2(&o.Protocol)
	o.ContextTimeoutEnabled = true
	o.DialerRetries = 1
	o.MaintNotificationsConfig = noNotifications()
	o.Dialer = dialer(redis.Options{TLSConfig: o.TLSConfig, DialTimeout: o.DialTimeout})
	client := redis.NewClusterClient(o)
	return &server{
		client: client, cluster: client,
		conn: connOptions(redis.Options{
			TLSConfig: o.TLSConfig, Username: o.Username, Password: o.Password,
			DialTimeout: o.DialTimeout, WriteTimeout: o.WriteTimeout,
		}),
		master: func(ctx context.Context) (string, error) {
			// Ordinary pub/sub reaches every server of a cluster from any other.
			master, err := client.MasterForKey(ctx, clusterKey)
			if err != nil {
				return "", err
			}
			return master.Options().Addr, nil
		},
	}, nil
}

// clusterKey picks the master that ordinary pub/sub goes through.
const clusterKey = "xabar"

func sentinelServer(text string) (*server, error) {
	o, err := redis.ParseFailoverURL(text)
	if err != nil {
		return nil, err
	}
	if o.MasterName == "" {
		return nil, errors.New("master_name is empty")
	}
	orTimeout(&o.DialTimeout)
	orTimeout(&o.ReadTimeout)
	orTimeout(&o.WriteTimeout)
	orProtocol2(&o.Protocol)
	o.MaxRetries = -1
	o.ContextTimeoutEnabled = true
	o.DialerRetries = 1
	o.Dialer = dialer(redis.Options{TLSConfig: o.TLSConfig, DialTimeout: o.DialTimeout})
	return &server{
		sentinel: true, client: redis.NewFailoverClient(o),
		conn: connOptions(redis.Options{
			TLSConfig: o.TLSConfig, Username: o.Username, Password: o.Password,
			DialTimeout: o.DialTimeout, WriteTimeout: o.WriteTimeout,
		}),
		master: func(ctx context.Context) (string, error) { return askSentinels(ctx, o) },
	}, nil
}

// askSentinels asks one Sentinel after the other who the master is.
func askSentinels(ctx context.Context, o *redis.FailoverOptions) (string, error) {
	var failures []error
	for _, addr := range o.SentinelAddrs {
		sentinel := redis.NewSentinelClient(&redis.Options{
			Addr: addr, Username: o.SentinelUsername, Password: o.SentinelPassword, TLSConfig: o.TLSConfig,
			DialTimeout: o.DialTimeout, ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout,
			MaxRetries: -1, DialerRetries: 1, PoolSize: 1, MaintNotificationsConfig: noNotifications(),
		})
		found, err := sentinel.GetMasterAddrByName(ctx, o.MasterName).Result()
		if closing := sentinel.Close(); err == nil && closing != nil {
			err = closing
		}
		if err == nil && len(found) == 2 {
			return joinHostPort(found[0], found[1]), nil
		}
		failures = append(failures, fmt.Errorf("sentinel %s: %w", addr, err))
	}
	return "", errors.Join(failures...)
}
