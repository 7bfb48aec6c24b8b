package engineio

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/gobwas/httphead"
	"github.com/gobwas/ws/wsflate"
	"github.com/klauspost/compress/flate"
)

// permessage-deflate (RFC 7692) without context takeover in both directions: a connection keeps
// no window, and one compressed frame serves all recipients of a broadcast.

const deflateAnswer = "permessage-deflate; server_no_context_takeover; client_no_context_takeover"

// offersDeflate reports whether the client offers permessage-deflate in a way that the server
// can accept: with the full window.
func offersDeflate(h http.Header) bool {
	accepted := false
	for _, line := range h["Sec-Websocket-Extensions"] {
		options, ok := httphead.ParseOptions([]byte(line), nil)
		if !ok {
			return false
		}
		for _, o := range options {
			var p wsflate.Parameters
			if string(o.Name) == wsflate.ExtensionName && p.Parse(o) == nil && !p.ServerMaxWindowBits.Defined() {
				accepted = true
			}
		}
	}
	return accepted
}

// flushTail is what a sync flush ends with and permessage-deflate leaves out; finalBlock ends
// the stream for the reader.
const (
	flushTail  = "\x00\x00\xff\xff"
	finalBlock = "\x01\x00\x00\xff\xff"
)

var flateWriters = sync.Pool{New: func() any {
	w, err := flate.NewWriter(io.Discard, flate.DefaultCompression)
	if err != nil {
		panic(err) // only an invalid level can fail
	}
	return w
}}

// deflate compresses one message.
func deflate(data []byte) []byte {
	var out bytes.Buffer
	w := flateWriters.Get().(*flate.Writer)
	defer flateWriters.Put(w)
	w.Reset(&out)
	_, err := w.Write(data)
	if err == nil {
		err = w.Flush()
	}
	if err != nil {
		panic(err) // a bytes.Buffer does not fail
	}
	return bytes.TrimSuffix(out.Bytes(), []byte(flushTail))
}

var flateReaders = sync.Pool{New: func() any { return flate.NewReader(bytes.NewReader(nil)) }}

// inflate decompresses one message of at most max bytes.
func inflate(data []byte, max int) ([]byte, error) {
	r := flateReaders.Get().(io.ReadCloser)
	defer flateReaders.Put(r)
	source := io.MultiReader(bytes.NewReader(data), bytes.NewReader([]byte(flushTail+finalBlock)))
	if err := r.(flate.Resetter).Reset(source, nil); err != nil {
		return nil, errInflate
	}
	out, err := io.ReadAll(io.LimitReader(r, int64(max)+1))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, errInflate
	}
	if len(out) > max {
		return nil, errTooBig
	}
	return out, nil
}
