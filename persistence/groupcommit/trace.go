package groupcommit

import "xabar/chat"

// maxLinks bounds the requests that a batch's span is linked to.
const maxLinks = 32

// batchSpan is the span of a batch in which a request is recorded, else nil. A span has one
// parent, and the batch serves many: it stands within the first one that is recorded,
// and is linked with the others.
func batchSpan[Req, Res any](shard int, batch []*Item[Req, Res]) chat.Span {
	var span chat.Span
	links := 0
	for _, it := range batch {
		switch {
		case it.span == nil:
		case span == nil:
			span = it.span.Child(chat.InternalSpan, "store.batch")
			span.Int("xabar.batch.size", int64(len(batch)))
			span.Int("xabar.batch.shard", int64(shard))
		case links < maxLinks:
			links++
			span.Link(it.span.Context())
			it.span.Link(span.Context())
		}
	}
	return span
}
