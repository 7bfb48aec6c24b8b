package postgres

import (
	"encoding/binary"
	"time"

	"xabar/chat"
)

// The statements that every message goes through are run with parameters and
// rows in PostgreSQL's binary form, written and read here by hand: reflection over
// arrays of a few hundred elements costs more than the rest of a send. Source:
// the send and recv functions of the types (array_send, uuid_send, int8send,
// timestamptz_send).

// Type numbers of array elements (pg_type.oid).
const (
	oidUUID = 2950
	oidText = 25
	oidInt8 = 20
	oidBool = 16

	oidTimestamptz = 1184
)

// array is a one-dimensional array being written.
type array struct{ b []byte }

const arrayHeader = 20 // dimensions, has-null, element type, length, lower bound

func newArray(elem uint32, n, elemSize int) *array {
	b := make([]byte, 0, arrayHeader+n*(4+elemSize))
	b = binary.BigEndian.AppendUint32(b, 1)
	b = binary.BigEndian.AppendUint32(b, 1) // there may be NULLs
	b = binary.BigEndian.AppendUint32(b, elem)
	b = binary.BigEndian.AppendUint32(b, uint32(n))
	b = binary.BigEndian.AppendUint32(b, 1)
	return &array{b}
}

func (a *array) id(id chat.ID) {
	a.b = binary.BigEndian.AppendUint32(a.b, 16)
	a.b = append(a.b, id[:]...)
}

func (a *array) text(s string) {
	a.b = binary.BigEndian.AppendUint32(a.b, uint32(len(s)))
	a.b = append(a.b, s...)
}

func (a *array) int(n int64) {
	a.b = binary.BigEndian.AppendUint32(a.b, 8)
	a.b = binary.BigEndian.AppendUint64(a.b, uint64(n))
}

func (a *array) bool(v bool) {
	a.b = binary.BigEndian.AppendUint32(a.b, 1)
	if v {
		a.b = append(a.b, 1)
	} else {
		a.b = append(a.b, 0)
	}
}

func (a *array) optional(n *int64) {
	if n == nil {
		a.b = binary.BigEndian.AppendUint32(a.b, 0xFFFFFFFF)
		return
	}
	a.int(*n)
}

// epoch is where PostgreSQL's times start, in Unix microseconds.
const epoch = 946684800 * 1_000_000

func timestamp(t time.Time) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(t.UnixMicro()-epoch))
}

func (a *array) time(t time.Time) { a.int(t.UnixMicro() - epoch) }

// row is one row of the answer in binary form; a nil column is NULL.
type row [][]byte

func (r row) int(i int) int64 {
	switch len(r[i]) {
	case 8:
		return int64(binary.BigEndian.Uint64(r[i]))
	case 4:
		return int64(int32(binary.BigEndian.Uint32(r[i])))
	default:
		return 0 // NULL
	}
}

func (r row) optional(i int) *int64 {
	if r[i] == nil {
		return nil
	}
	n := r.int(i)
	return &n
}

func (r row) id(i int) (id chat.ID) {
	copy(id[:], r[i])
	return id
}

func (r row) optionalID(i int) *chat.ID {
	if r[i] == nil {
		return nil
	}
	id := r.id(i)
	return &id
}

func (r row) time(i int) chat.Time { return chat.At(time.UnixMicro(r.int(i) + epoch)) }

func (r row) optionalTime(i int) *chat.Time {
	if r[i] == nil {
		return nil
	}
	t := r.time(i)
	return &t
}

func (r row) null(i int) bool { return r[i] == nil }
