#!/bin/sh
# Writes the .env beside compose.yaml: fresh secrets, and the settings that one may want to change. It never
# overwrites one, since the database keeps the password with which it was made.
#
#   sh make-env.sh          tokens are yours: sign them with XABAR_JWT_SECRET
#   sh make-env.sh --demo   to try it: anybody who reaches the port can log in with any name
set -eu
umask 077

demo=false
case "${1:-}" in
  --demo) demo=true ;;
  "") ;;
  *) echo "usage: make-env.sh [--demo]" >&2; exit 2 ;;
esac

file="${XABAR_ENV_FILE:-$(dirname "$0")/.env}"
if [ -e "$file" ]; then
  echo "$file is there already; the database knows its password. Edit it, or remove it and the volumes." >&2
  exit 1
fi

# Hexadecimal, so that they can stand in a URL.
random() { od -An -N "$1" -tx1 /dev/urandom | tr -d ' \n'; }

cat >"$file.new" <<END
# Made by make-env.sh. Whoever reads it can log in as anybody: keep it out of version control.
POSTGRES_PASSWORD=$(random 24)
REDIS_PASSWORD=$(random 24)
# Signs your users' tokens (HS256).
XABAR_JWT_SECRET=$(random 32)
# What your own server shows to use /admin.
XABAR_SERVER_KEY=$(random 24)
GRAFANA_PASSWORD=$(random 12)

# Where the proxy listens. Only this machine; 0.0.0.0:80 is everybody, and wants TLS in front.
PUBLISH=127.0.0.1:8080
# Web origins of your pages, if they are served from elsewhere: https://example.org,https://*.example.org
#XABAR_ALLOWED_ORIGINS=
# Anybody can log in with any name (and the page at / lets them).
XABAR_DEMO=$demo
XABAR_DEMO_PUBLIC=$demo
END
mv "$file.new" "$file"
echo "Wrote $file"
