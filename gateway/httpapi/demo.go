package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"xabar/chat"
	"xabar/gateway/httpapi/api"
)

// demoTokenTTL is how long a demo login lasts.
const demoTokenTTL = 24 * time.Hour

// Demo lets anybody in by a name: the same name is the same user, and all demo
// users are each other's contacts. For trying things out.
type Demo struct {
	Users interface {
		AddDemoUser(ctx context.Context, name string) (chat.User, error)
	}
	Minter interface {
		Mint(sub chat.UserRef, name string, ttl time.Duration) (token string, expires time.Time, err error)
	}
}

// DemoLogin implements api.ServerInterface.
func (s *server) DemoLogin(c echo.Context) error {
	if s.demo == nil {
		return switchedOff("demo mode")
	}
	req, err := decode[api.DemoLogin](c)
	if err != nil {
		return err
	}
	name, err := chat.CheckLabel("name", req.Name, chat.MaxNameLength)
	if err != nil {
		return err
	}
	user, err := s.demo.Users.AddDemoUser(c.Request().Context(), name)
	if err != nil {
		return err
	}
	token, _, err := s.demo.Minter.Mint(chat.UserRef(user.ID.String()), user.Name, demoTokenTTL)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, api.DemoSession{Token: token, User: wireUser(user)})
}
