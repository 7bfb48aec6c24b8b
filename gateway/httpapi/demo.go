package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"xabar/chat"
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

type demoLogin struct {
	Token string    `json:"token"`
	User  chat.User `json:"user"`
}

func (d *Demo) login(c echo.Context) error {
	// A form of a foreign page could post without asking first, but not as JSON.
	kind, _, err := mime.ParseMediaType(c.Request().Header.Get(echo.HeaderContentType))
	if err != nil || kind != echo.MIMEApplicationJSON {
		return chat.Errorf(chat.CodeInvalidArgument, "the content type must be application/json")
	}
	var body struct {
		Name *string `json:"name"`
	}
	if err := decode(c.Request().Body, &body); err != nil {
		return err
	}
	if body.Name == nil {
		return chat.InvalidArgument("name", "name is required")
	}
	name, err := chat.CheckLabel("name", *body.Name, chat.MaxNameLength)
	if err != nil {
		return err
	}
	user, err := d.Users.AddDemoUser(c.Request().Context(), name)
	if err != nil {
		return err
	}
	token, _, err := d.Minter.Mint(chat.UserRef(user.ID.String()), user.Name, demoTokenTTL)
	if err != nil {
		return err
	}
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return c.JSON(http.StatusOK, demoLogin{Token: token, User: user})
}

// decode reads one JSON value. Errors: invalid_argument with the field; the
// body limit's own.
func decode(body io.Reader, into any) error {
	err := json.NewDecoder(body).Decode(into)
	var tooLarge *echo.HTTPError
	if err == nil || errors.As(err, &tooLarge) {
		return err
	}
	var wrongType *json.UnmarshalTypeError
	if errors.As(err, &wrongType) {
		return chat.InvalidArgument(wrongType.Field, "%s has the wrong type", wrongType.Field)
	}
	return chat.Errorf(chat.CodeInvalidArgument, "the body is not JSON")
}
