// Package proxy holds the tests of deploy/nginx, deploy/haproxy, deploy/caddy and deploy/systemd: the
// shipped files themselves, with other addresses, in the programs that they are for, in front of real nodes.
package proxy

import (
	"testing"

	"xabar/internal/testkit"
	"xabar/internal/testkit/pgtest"
)

func TestMain(m *testing.M) { testkit.Main(m, pgtest.StopShared) }
