package centrifugo

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/gobwas/ws"
)

// readSize is the buffer of a connection, maxFrame what it must be able to take.
const (
	readSize = 1024
	maxFrame = 1 << 20
)

// client is a connection that speaks the JSON form of Centrifugo's client protocol: commands, replies and
// pushes are objects, those of one frame stand on lines of their own, and {} is a ping and its answer.
type client struct {
	conn   net.Conn
	reader *bufio.Reader
	frame  []byte // the last one that was read

	mu sync.Mutex // held by whoever writes
}

// dial opens a connection and sends commands; it returns when as many replies have come. ctx bounds it.
func dial(ctx context.Context, url string, commands ...string) (*client, error) {
	address := "ws" + strings.TrimPrefix(url, "http") + "/connection/websocket"
	conn, early, _, err := ws.Dialer{}.Dial(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("open a WebSocket to %s: %w", url, err)
	}
	if early != nil { // the server speaks when it is spoken to
		_ = conn.Close()
		return nil, fmt.Errorf("%s sent something before it was asked", url)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // many short runs must not use up the ports
	}
	c := &client{conn: conn, reader: bufio.NewReaderSize(conn, readSize)}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	if err = c.greet(commands); err == nil && !stop() {
		err = ctx.Err()
	}
	if err != nil {
		stop()
		_ = conn.Close()
		return nil, fmt.Errorf("connect to %s: %w", url, err)
	}
	return c, nil
}

func (c *client) greet(commands []string) error {
	if err := c.write([]byte(strings.Join(commands, "\n"))); err != nil {
		return err
	}
	for missing := len(commands); missing > 0; {
		err := c.read(func(line []byte) error {
			if bytes.Contains(line, []byte(`"error":`)) {
				return fmt.Errorf("refused: %s", line)
			}
			if bytes.HasPrefix(line, []byte(`{"id":`)) {
				missing--
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// write sends a text in a frame and by one system call.
func (c *client) write(text []byte) error {
	frame, err := ws.CompileFrame(ws.MaskFrame(ws.NewTextFrame(text)))
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err = c.conn.Write(frame)
	return err
}

// read waits for a frame and hands out its lines, which are valid until the next call.
func (c *client) read(handle func(line []byte) error) error {
	header, err := ws.ReadHeader(c.reader)
	if err != nil {
		return err
	}
	if header.OpCode == ws.OpClose {
		return io.EOF
	}
	if header.OpCode != ws.OpText || !header.Fin || header.Length > maxFrame {
		return fmt.Errorf("unexpected frame: %+v", header)
	}
	c.frame = slices.Grow(c.frame[:0], int(header.Length))[:header.Length]
	if _, err := io.ReadFull(c.reader, c.frame); err != nil {
		return err
	}
	for line := range bytes.SplitSeq(c.frame, []byte("\n")) {
		switch string(line) {
		case "":
		case "{}":
			err = c.write(line)
		default:
			err = handle(line)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
