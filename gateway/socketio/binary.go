package socketio

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
)

// placeholder watches the members of an object for what makes it stand for a binary.
type placeholder struct {
	is  bool
	num []byte
}

func (p *placeholder) see(name, value []byte) {
	switch plainString(name) {
	case "_placeholder":
		p.is = string(value) == "true" // a later member of the same name wins, as in JavaScript
	case "num":
		p.num = value
	}
}

// plainString is the text of a JSON string.
func plainString(raw []byte) string {
	if !bytes.ContainsRune(raw, '\\') {
		return string(raw[1 : len(raw)-1])
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return "" // never: it was scanned
	}
	return s
}

// eachPlaceholder calls f for the outermost placeholders in raw, in order.
func eachPlaceholder(raw []byte, f func(start, end, num int) error) error {
	type span struct{ start, end, num int }
	var found []span // an inner object ends, and is found, before the one around it
	sc := scanner{data: raw, depth: maxOwnDepth}
	sc.onObject = func(start, end int, num []byte) error {
		n, err := strconv.Atoi(string(num))
		if err != nil || n < 0 {
			return fmt.Errorf("%w: illegal attachments", ErrMalformed)
		}
		for len(found) > 0 && found[len(found)-1].start > start {
			found = found[:len(found)-1]
		}
		found = append(found, span{start, end, n})
		return nil
	}
	sc.space()
	if err := sc.value(); err != nil {
		return err
	}
	for _, s := range found {
		if err := f(s.start, s.end, s.num); err != nil {
			return err
		}
	}
	return nil
}

// checkPlaceholders checks that all placeholders point to one of n attachments.
func checkPlaceholders(raw []byte, n int) error {
	return eachPlaceholder(raw, func(_, _, num int) error {
		if num >= n {
			return fmt.Errorf("%w: illegal attachments", ErrMalformed)
		}
		return nil
	})
}

// placeholderNum is the number of raw if it is a placeholder itself.
func placeholderNum(raw []byte) (num int, ok bool) {
	if len(raw) == 0 || raw[0] != '{' {
		return 0, false
	}
	err := eachPlaceholder(raw, func(start, end, n int) error {
		if start == 0 && end == len(raw) {
			num, ok = n, true
		}
		return nil
	})
	return num, ok && err == nil
}

// inlineBinaries replaces placeholders by base64 strings, which encoding/json decodes into
// []byte and Binary.
func inlineBinaries(raw []byte, bin [][]byte) ([]byte, error) {
	return replacePlaceholders(raw, func(out []byte, num int) ([]byte, error) {
		if num >= len(bin) {
			return nil, fmt.Errorf("%w: illegal attachments", ErrMalformed)
		}
		out = append(out, '"')
		out = base64.StdEncoding.AppendEncode(out, bin[num])
		return append(out, '"'), nil
	})
}

func replacePlaceholders(raw []byte, f func(out []byte, num int) ([]byte, error)) ([]byte, error) {
	var out []byte
	at := 0
	err := eachPlaceholder(raw, func(start, end, num int) (err error) {
		out = append(out, raw[at:start]...)
		at = end
		out, err = f(out, num)
		return err
	})
	return append(out, raw[at:]...), err
}

func appendPlaceholder(b []byte, num int) []byte {
	b = append(b, `{"_placeholder":true,"num":`...)
	b = strconv.AppendInt(b, int64(num), 10)
	return append(b, '}')
}

// binaryMark stands around a Binary while encoding/json works: {"<mark>":"<base64>"}. It is
// random, so that no client's text can look like it.
var binaryMark = func() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	return `{"_bin_` + hex.EncodeToString(b[:]) + `":"`
}()

// MarshalJSON implements json.Marshaler for this package's encoder, which makes an
// attachment of the result. It is of no use elsewhere: convert to []byte there.
func (b Binary) MarshalJSON() ([]byte, error) {
	out := append(make([]byte, 0, len(binaryMark)+base64.StdEncoding.EncodedLen(len(b))+2), binaryMark...)
	return append(base64.StdEncoding.AppendEncode(out, b), `"}`...), nil
}
