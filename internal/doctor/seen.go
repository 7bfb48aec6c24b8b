package doctor

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// SeenPath is where a gateway tells how a request reached it: below Socket.IO's path, since
// proxies often pass nothing else.
const SeenPath = "/socket.io/doctor"

// proofHeader proves to hold the server key without sending it.
const proofHeader = "X-Xabar-Doctor"

// proofAge bounds how far the two clocks may be apart, and so for how long somebody who has
// seen a proof could repeat it, to learn how its own request looks.
const proofAge = 5 * time.Minute

// Seen is a request as it arrived at a gateway.
type Seen struct {
	Node         string   `json:"node"`          // which process it was; another one after a restart
	Address      string   `json:"address"`       // the client's, as limits count it
	Peer         string   `json:"peer"`          // who made the connection: the nearest proxy
	ForwardedFor []string `json:"forwarded_for"` // X-Forwarded-For, the nearest proxy's entry last
	Host         string   `json:"host"`
	Time         int64    `json:"time"` // of the gateway's clock, Unix milliseconds
}

// prove makes the value of proofHeader.
func prove(serverKey string, at time.Time) string {
	moment := strconv.FormatInt(at.Unix(), 10)
	return "v1 " + moment + " " + hex.EncodeToString(proof(serverKey, moment))
}

func proof(serverKey, moment string) []byte {
	mac := hmac.New(sha256.New, []byte(serverKey))
	mac.Write([]byte("xabar doctor v1\n" + SeenPath + "\n" + moment)) // never fails
	return mac.Sum(nil)
}

// proven says whether a header's value was made by who holds the key.
func proven(serverKey, header string, now time.Time) bool {
	words := strings.Split(header, " ")
	if serverKey == "" || len(words) != 3 || words[0] != "v1" {
		return false
	}
	given, err := hex.DecodeString(words[2])
	if err != nil || !hmac.Equal(given, proof(serverKey, words[1])) {
		return false
	}
	seconds, err := strconv.ParseInt(words[1], 10, 64)
	return err == nil && now.Sub(time.Unix(seconds, 0)).Abs() <= proofAge
}

// SeenHandler answers requests for SeenPath. Whoever has no proof of serverKey gets what any
// unknown path gets; without a key everybody does. node names this process, address is the
// client's as limits count it.
func SeenHandler(serverKey, node string, address func(*http.Request) string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now := time.Now()
		if !proven(serverKey, r.Header.Get(proofHeader), now) {
			http.NotFound(w, r)
			return
		}
		seen := Seen{
			Node: node, Address: address(r), Peer: r.RemoteAddr, ForwardedFor: []string{}, Host: r.Host, Time: now.UnixMilli(),
		}
		if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
			seen.Peer = host
		}
		for entry := range strings.SplitSeq(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",") {
			if entry = strings.TrimSpace(entry); entry != "" {
				seen.ForwardedFor = append(seen.ForwardedFor, entry)
			}
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_ = json.NewEncoder(w).Encode(seen) // a client that has gone needs no answer
	})
}
