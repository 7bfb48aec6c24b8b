package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/labstack/echo/v4"

	"xabar/chat"
	"xabar/gateway/httpapi/api"
)

// await waits for what a queued call of the service answers.
func await[T any](ctx context.Context, call func(done func(T, error))) (T, error) {
	type answer struct {
		value T
		err   error
	}
	answered := make(chan answer, 1) // done never blocks, also when nobody waits any more
	call(func(value T, err error) { answered <- answer{value, err} })
	select {
	case a := <-answered:
		return a.value, a.err
	case <-ctx.Done():
		var none T
		return none, chat.Wrap(chat.CodeTimeout, ctx.Err())
	}
}

// SendMessage implements api.ServerInterface.
func (s *server) SendMessage(c echo.Context, id api.ConversationID) error {
	req, err := decode[api.SendMessage](c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	sent, err := await(ctx, func(done func(chat.Sent, error)) {
		s.service.Send(ctx, actor(c), chat.SendRequest{
			ConversationID: &id, ClientMsgID: req.ClientMsgID, Text: req.Text, ReplyToSeq: req.ReplyToSeq,
		}, done)
	})
	return answerSent(c, sent, err)
}

// answerSent answers a repeat with another status and the same body.
func answerSent(c echo.Context, sent chat.Sent, err error) error {
	if err != nil {
		return err
	}
	return c.JSON(createdStatus(!sent.Duplicate), wireMessage(sent.Message))
}

// ListMessages implements api.ServerInterface.
func (s *server) ListMessages(c echo.Context, id api.ConversationID, params api.ListMessagesParams) error {
	history, err := s.service.History(c.Request().Context(), actor(c), chat.HistoryQuery{
		ConversationID: id, BeforeSeq: params.BeforeSeq, AfterSeq: params.AfterSeq, Limit: pageLimit(params.Limit),
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, api.MessagePage{
		Messages: each(history.Messages, wireMessage), HasMore: history.HasMore, LastSeq: history.LastSeq,
	})
}

// ListReceipts implements api.ServerInterface.
func (s *server) ListReceipts(c echo.Context, id api.ConversationID, seq int64, params api.ListReceiptsParams) error {
	receipts, err := s.service.Receipts(c.Request().Context(), actor(c), id, seq, page(params.Cursor, params.Limit))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, api.ReceiptPage{
		Receipts: each(receipts.Items, wireReceipt), NextCursor: cursor(receipts.NextCursor),
	})
}

// MarkRead implements api.ServerInterface.
func (s *server) MarkRead(c echo.Context, id api.ConversationID) error {
	position, err := move(c, id, s.service.MarkRead)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, api.ReadPosition{
		LastReadSeq: position.NewRead, Unread: position.LastSeq - position.NewRead,
	})
}

// MarkDelivered implements api.ServerInterface.
func (s *server) MarkDelivered(c echo.Context, id api.ConversationID) error {
	position, err := move(c, id, s.service.MarkDelivered)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, api.DeliveredPosition{LastDeliveredSeq: position.NewDelivered})
}

func move(c echo.Context, id chat.ID,
	mark func(context.Context, chat.Actor, chat.ID, int64, func(chat.PositionResult, error)),
) (chat.PositionResult, error) {
	req, err := decode[api.Position](c)
	if err != nil {
		return chat.PositionResult{}, err
	}
	ctx := c.Request().Context()
	return await(ctx, func(done func(chat.PositionResult, error)) { mark(ctx, actor(c), id, req.Seq, done) })
}

// Sync implements api.ServerInterface.
func (s *server) Sync(c echo.Context) error {
	req, err := decode[api.SyncRequest](c)
	if err != nil {
		return err
	}
	query := chat.SyncQuery{}
	if req.Cursor != nil {
		query.Cursor = *req.Cursor
	}
	if req.Epoch != nil {
		query.Epoch = *req.Epoch
	}
	if req.Positions != nil {
		if query.Positions, err = syncPositions(*req.Positions); err != nil {
			return err
		}
	}
	news, err := s.service.Sync(c.Request().Context(), actor(c), query)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, wireSyncPage(news))
}

// syncPositions reads what the description says of them: a seq, or {seq, version, id}.
func syncPositions(named map[string]api.SyncPosition) (map[chat.ID]chat.SyncPosition, error) {
	positions := make(map[chat.ID]chat.SyncPosition, len(named))
	for key, raw := range named {
		id, ok := chat.UserRef(key).ID()
		if !ok {
			return nil, chat.InvalidArgument("positions", "the names in positions are conversation ids")
		}
		var position struct {
			Seq, Version int64
			ID           chat.ID
		}
		into := any(&position)
		if len(raw) > 0 && raw[0] != '{' {
			into = &position.Seq
		}
		if err := json.Unmarshal(raw, into); err != nil {
			return nil, chat.InvalidArgument("positions", "a position is a seq or {seq, version, id}")
		}
		positions[id] = chat.SyncPosition{Seq: position.Seq, Version: position.Version, ID: position.ID}
	}
	return positions, nil
}
