package httpapi

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"xabar/chat"
	"xabar/gateway/httpapi/api"
)

// OpenConversation implements api.ServerInterface.
func (s *server) OpenConversation(c echo.Context) error {
	req, err := decode[api.OpenConversation](c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	direct, group := req.UserID != nil, req.Title != nil || req.MemberIds != nil
	switch {
	case direct == group:
		return chat.InvalidArgument("userId", "either userId, or title and memberIds")
	case direct:
		conversation, created, err := s.service.OpenDirect(ctx, actor(c), *req.UserID)
		if err != nil {
			return err
		}
		return c.JSON(createdStatus(created), wireConversation(conversation))
	case req.Title == nil:
		return chat.InvalidArgument("title", "title is required for a group")
	case req.MemberIds == nil:
		return chat.InvalidArgument("memberIds", "memberIds are required for a group")
	}
	conversation, err := s.service.CreateGroup(ctx, actor(c), *req.Title, *req.MemberIds)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusCreated, wireConversation(conversation))
}

func createdStatus(created bool) int {
	if created {
		return http.StatusCreated
	}
	return http.StatusOK
}

// ListConversations implements api.ServerInterface.
func (s *server) ListConversations(c echo.Context, params api.ListConversationsParams) error {
	list, err := s.service.Conversations(c.Request().Context(), actor(c), page(params.Cursor, params.Limit))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, api.ConversationPage{
		Conversations: each(list.Conversations, wireConversation),
		UnreadTotal:   list.UnreadTotal, NextCursor: cursor(list.NextCursor),
	})
}

// GetConversation implements api.ServerInterface.
func (s *server) GetConversation(c echo.Context, id api.ConversationID) error {
	conversation, err := s.service.Conversation(c.Request().Context(), actor(c).User.ID, id)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, wireConversation(conversation))
}

// RenameConversation implements api.ServerInterface.
func (s *server) RenameConversation(c echo.Context, id api.ConversationID) error {
	req, err := decode[api.RenameConversation](c)
	if err != nil {
		return err
	}
	conversation, err := s.service.RenameGroup(c.Request().Context(), actor(c), id, req.Title)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, wireConversation(conversation))
}

// MuteConversation implements api.ServerInterface.
func (s *server) MuteConversation(c echo.Context, id api.ConversationID) error {
	req, err := decode[api.Mute](c)
	if err != nil {
		return err
	}
	var until *time.Time
	if req.MutedUntil != nil {
		until = &req.MutedUntil.Time
	}
	conversation, err := s.service.Mute(c.Request().Context(), actor(c), id, until)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, wireConversation(conversation))
}
