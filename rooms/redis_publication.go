package rooms

import (
	"encoding/base64"

	"xabar/chat"
)

// publication is one message on its way to Redis, for one channel or several.
type publication struct {
	few     [2]address // its channels, if many is nil: most concern two users
	count   int        // of few
	many    []address
	payload []byte
	// pooled, if not nil, is where payload's memory goes when Redis has it.
	pooled *[]byte
	// done, if not nil, is told once what became of it, on the publisher's goroutine: nil, or
	// what went wrong on at least one of the channels. It must not block.
	done func(err error)
	// probe tries also while Redis is known to be down.
	probe bool
}

// address is a channel: its name is name, followed by id in base64 if that is part of it. Names end
// in ids where there are very many; they are put together when they are written.
type address struct {
	verb  verb // classic or sharded
	name  string
	id    chat.ID
	ofOne bool // id is part of the name
}

// publicationTo is a publication for one channel.
func publicationTo(v verb, channel string, payload []byte) publication {
	return publication{few: [2]address{{verb: v, name: channel}}, count: 1, payload: payload}
}

func (p *publication) add(a address) {
	switch {
	case p.many != nil:
		p.many = append(p.many, a)
	case p.count < len(p.few):
		p.few[p.count] = a
		p.count++
	default:
		p.many = append(append(make([]address, 0, 8), p.few[:]...), a)
	}
}

// addresses are its channels, valid while p stays where it is.
func (p *publication) addresses() []address {
	if p.many != nil {
		return p.many
	}
	return p.few[:p.count]
}

// append appends the channel's whole name.
func (a *address) append(b []byte) []byte {
	b = append(b, a.name...)
	if a.ofOne {
		b = base64.RawURLEncoding.AppendEncode(b, a.id[:])
	}
	return b
}
