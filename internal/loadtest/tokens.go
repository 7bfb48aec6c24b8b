package loadtest

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"xabar/chat"
	"xabar/gateway/auth"
)

// Minted are tokens that are signed (HS256) with the server's secret, for users whose
// external ids are the prefix and a number.
func Minted(minter *auth.Minter, prefix string) func(int) (token, user string, err error) {
	return func(i int) (string, string, error) {
		sub := fmt.Sprintf("%s%d", prefix, i)
		token, _, err := minter.Mint(chat.UserRef(sub), sub, 24*time.Hour)
		return token, sub, err
	}
}

// TokensFrom reads a file with a token on each line. Behind a token, separated by a
// space, may stand how others refer to its user; else it is the `sub` of the JWT.
func TokensFrom(path string) (func(int) (token, user string, err error), error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var tokens [][2]string
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		token, user, named := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		if token == "" {
			continue
		}
		if !named {
			if user, err = subject(token); err != nil {
				return nil, fmt.Errorf("%s: token %d: %w", path, len(tokens)+1, err)
			}
		}
		tokens = append(tokens, [2]string{token, strings.TrimSpace(user)})
	}
	return func(i int) (string, string, error) {
		if i >= len(tokens) {
			return "", "", fmt.Errorf("%s has only %d tokens", path, len(tokens))
		}
		return tokens[i][0], tokens[i][1], nil
	}, lines.Err()
}

// subject reads a JWT's sub without checking the token: that is the server's to do.
func subject(token string) (string, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "", fmt.Errorf("it is no JWT; write the user behind it")
	}
	body, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return "", err
	}
	var claims struct{ Sub any }
	if err := json.Unmarshal(body, &claims); err != nil {
		return "", err
	}
	return fmt.Sprint(claims.Sub), nil
}
