package doctor

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"
)

// forged is an address that nobody has (RFC 5737). Whoever sends it as X-Forwarded-For must not
// be taken for it.
const forged = "192.0.2.123"

// seen asks what address the gateway sees.
func (p *public) seen() []ClockSample {
	if p.in.ServerKey == "" {
		p.s.OK("client address", "not asked: with --server-key the gateway tells which one it sees")
		return nil
	}
	var got Seen
	sample, err := sampleClock("the gateway", p.in.Now, func() (time.Time, error) {
		var err error
		got, err = p.ask()
		return time.UnixMilli(got.Time), err
	})
	if err != nil {
		p.s.Warn("client address", "is --server-key the gateway's, is it of this version, and does the proxy pass "+SeenPath+"? Clocks more than 5 minutes apart look the same", "not known: %s", short(err))
		return nil
	}
	lied, err := p.ask("X-Forwarded-For", forged)
	if err != nil {
		p.s.Warn("client address", "look at the log of the proxy", "with X-Forwarded-For the request fails: %s", short(err))
		return []ClockSample{sample}
	}
	p.judge(got, lied)
	return []ClockSample{sample}
}

func (p *public) ask(header ...string) (Seen, error) {
	a, err := p.do(newBrowser(false), publicPatience, http.MethodGet, SeenPath, "", append(header, proofHeader, prove(p.in.ServerKey, p.in.Now()))...)
	if err != nil {
		return Seen{}, err
	}
	var got Seen
	if a.status != http.StatusOK || json.Unmarshal([]byte(a.body), &got) != nil || got.Address == "" {
		return Seen{}, errNotSeen
	}
	return got, nil
}

// judge compares what the gateway saw of an honest request and of one with a forged address.
func (p *public) judge(honest, lied Seen) {
	const name = "client address"
	switch {
	case lied.Address == forged && len(lied.ForwardedFor) == 1:
		p.s.Problem(name, "have the proxy set X-Forwarded-For itself (nginx: $proxy_add_x_forwarded_for, HAProxy: option forwardfor), or take who is no proxy out of --trusted-proxies",
			"the gateway believes X-Forwarded-For as a client has written it: anybody can pass for anybody and get around the limits")
	case len(honest.ForwardedFor) > 0 && allAre(honest.ForwardedFor, honest.Peer):
		p.s.OK(name, "client and proxy are both %s here: ask from another machine to see more", honest.Peer)
	case lied.Address == forged:
		p.s.Warn(name, "ask from another machine: if it is the same there, take its network out of --trusted-proxies",
			"a forged X-Forwarded-For is believed from here, because %s count as proxies", strings.Join(lied.ForwardedFor[1:], ", "))
	case len(honest.ForwardedFor) == 0:
		p.s.OK(name, "%s. No proxy adds X-Forwarded-For; if one stands between, it should, and be named in --trusted-proxies", honest.Address)
	case honest.Address == honest.Peer:
		p.s.Warn(name, "--trusted-proxies "+honest.Peer+" on every node", "the gateway takes all clients for the proxy %s: limits count them together. X-Forwarded-For says %s",
			honest.Peer, strings.Join(honest.ForwardedFor, ", "))
	default:
		p.s.OK(name, "%s, told by the proxy %s; a forged one is not believed", honest.Address, honest.Peer)
	}
}

func allAre(list []string, one string) bool {
	return !slices.ContainsFunc(list, func(s string) bool { return s != one })
}
