package engineio

import "testing"

func TestOrigins(t *testing.T) {
	listed := []string{"https://app.example", "https://*.sub.example", "null"}
	for _, c := range []struct {
		name    string
		opts    Options
		origin  string // "self": the server's own
		allowed bool
		echo    string
		creds   string
	}{
		{"none", Options{}, "", true, "", ""},
		{"own", Options{}, "self", true, "", ""},
		{"foreign", Options{}, "https://evil.example", false, "", ""},
		{"garbage", Options{}, "%%%", false, "", ""},
		{"null", Options{}, "null", false, "", ""},
		{"listed", Options{Origins: listed}, "https://app.example", true, "https://app.example", ""},
		{"listed with credentials", Options{Origins: listed, Credentials: true}, "https://app.example", true, "https://app.example", "true"},
		{"other scheme", Options{Origins: listed}, "http://app.example", false, "", ""},
		{"suffix", Options{Origins: listed}, "https://app.example.evil", false, "", ""},
		{"subdomain", Options{Origins: listed}, "https://a.b.sub.example", true, "https://a.b.sub.example", ""},
		{"not a subdomain", Options{Origins: listed}, "https://sub.example", false, "", ""},
		{"path in a subdomain", Options{Origins: listed}, "https://evil/x.sub.example", false, "", ""},
		{"null listed", Options{Origins: listed}, "null", true, "null", ""},
		{"any", Options{Origins: []string{"*"}}, "https://x.example", true, "*", ""},
		{"any, never with credentials", Options{Origins: []string{"*"}, Credentials: true}, "https://x.example", true, "*", ""},
		{"any and listed", Options{Origins: []string{"*", "https://app.example"}, Credentials: true}, "https://app.example", true, "https://app.example", "true"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t, c.opts, nil)
			origin := c.origin
			if origin == "self" {
				origin = f.http.URL
			}
			var header []string
			if origin != "" {
				header = []string{"Origin", origin}
			}
			a := f.request("GET", "EIO=4&transport=polling", "", header...)
			if (a.status == 200) != c.allowed {
				t.Fatalf("polling: %d %s", a.status, a.body)
			}
			if !c.allowed {
				a.want(t, 403, `{"code":4,"message":"Forbidden"}`)
			}
			if a.header.Get("Access-Control-Allow-Origin") != c.echo || a.header.Get("Access-Control-Allow-Credentials") != c.creds {
				t.Errorf("headers: %v", a.header)
			}
			if w := f.upgrade("EIO=4&transport=websocket", header...); (w.resp.StatusCode == 101) != c.allowed {
				t.Errorf("upgrade: %d", w.resp.StatusCode)
			}
			if len(header) == 0 {
				return
			}
			a = f.request("OPTIONS", "EIO=4&transport=polling", "", append(header, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "x-token")...)
			if (a.status == 204) != c.allowed {
				t.Errorf("preflight: %d", a.status)
			}
			if c.allowed && (a.header.Get("Access-Control-Allow-Headers") != "x-token" || a.header.Get("Access-Control-Allow-Methods") == "" ||
				a.header.Get("Access-Control-Allow-Origin") != c.echo) {
				t.Errorf("preflight: %v", a.header)
			}
		})
	}
}

func TestSameOriginIgnoresDefaultPorts(t *testing.T) {
	for _, c := range []struct {
		origin, host string
		want         bool
	}{
		{"https://chat.example", "chat.example:443", true},
		{"http://chat.example:80", "chat.example", true},
		{"https://Chat.Example", "chat.example", true},
		{"https://chat.example:8443", "chat.example", false},
		{"https://chat.example", "chat.example:80", false},
		{"chat.example", "chat.example", false},
	} {
		if got := sameOrigin(c.origin, c.host); got != c.want {
			t.Errorf("%s, %s: %v", c.origin, c.host, got)
		}
	}
}

// An origin that may not open a session may not use one either.
func TestForeignOriginOfASession(t *testing.T) {
	f := newFixture(t, Options{}, nil)
	p := f.openPolling()
	for _, method := range []string{"GET", "POST"} {
		f.request(method, p.query, "4x", "Origin", "https://evil.example").want(t, 403, `{"code":4,"message":"Forbidden"}`)
	}
}
