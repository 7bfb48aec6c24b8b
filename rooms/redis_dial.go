package rooms

import (
	"context"
	"net"
	"syscall"

	"github.com/redis/go-redis/v9"

	"xabar/internal/sockets"
)

// dialer is the driver's own, with sockets that do not wake the scheduler's monitor for each message.
func dialer(o redis.Options) func(ctx context.Context, network, addr string) (net.Conn, error) {
	dial := redis.NewDialer(&o)
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		raw := sockets.Raw(conn)
		if raw == nil { // TLS
			return conn, nil
		}
		return &quietConn{sockets.Quiet(conn), raw}, nil
	}
}

// quietConn is a connection of the driver's pool.
type quietConn struct {
	net.Conn
	raw syscall.RawConn
}

// SyscallConn is for the driver, which looks before each command whether the server has closed the
// connection.
func (c *quietConn) SyscallConn() (syscall.RawConn, error) { return lookout{c.raw}, nil }

// lookout answers that look itself where all is well.
type lookout struct{ syscall.RawConn }

// Read calls f only if there is something to read, or the end.
func (l lookout) Read(f func(fd uintptr) bool) error {
	return l.RawConn.Read(func(fd uintptr) bool { return sockets.Empty(fd) || f(fd) })
}
