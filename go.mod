module xabar

go 1.26.0

require (
	github.com/HdrHistogram/hdrhistogram-go v1.4.0 // loadtest: percentiles without coordinated omission
	github.com/MicahParks/jwkset v0.11.4 // JSON Web Key Sets; keyfunc above it hides whether the provider was reached
	github.com/VictoriaMetrics/metricsql v0.87.3 // tests: reads the queries of dashboard and alerts
	github.com/alecthomas/kong v1.17.0 // flags and environment variables from one struct
	github.com/getkin/kin-openapi v0.153.0 // checks HTTP requests against openapi.yaml
	github.com/gobwas/httphead v0.1.0 // header tokens of the WebSocket upgrade; comes with gobwas/ws
	github.com/gobwas/ws v1.5.0 // WebSocket frames without buffers or goroutines of its own
	github.com/golang-jwt/jwt/v5 v5.3.1 // tokens
	github.com/golang-migrate/migrate/v4 v4.20.1 // migrations, with the file names that we use
	github.com/google/uuid v1.6.0 // UUIDv7
	github.com/hashicorp/golang-lru/v2 v2.0.7 // bounded caches
	github.com/jackc/pgx/v5 v5.13.0 // PostgreSQL
	github.com/klauspost/compress v1.20.4 // permessage-deflate that is cheaper than the standard library's
	github.com/labstack/echo/v4 v4.16.5 // HTTP routes
	github.com/mattn/go-isatty v0.0.24 // is the output a terminal?
	github.com/oapi-codegen/runtime v1.9.0 // what the generated HTTP interface needs
	github.com/prometheus/client_golang v1.25.0 // metrics
	github.com/redis/go-redis/v9 v9.23.0 // Redis, Sentinel and Cluster
	github.com/riverqueue/river v0.51.2 // the queue that delivers notifications, on the same database
	github.com/riverqueue/river/riverdriver v0.51.2 // River's port for drivers
	github.com/riverqueue/river/riverdriver/riverpgxv5 v0.51.2 // River on PostgreSQL
	github.com/riverqueue/river/riverdriver/riversqlite v0.51.2 // River on SQLite
	github.com/riverqueue/river/rivertype v0.51.2 // River's types of jobs
	github.com/rivo/uniseg v0.4.7 // cuts previews at whole graphemes
	github.com/vmihailenco/msgpack/v5 v5.4.1 // the msgpack parser and the wire format of Socket.IO's Redis adapter
	go.opentelemetry.io/otel v1.47.0 // traces: the API
	go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp v1.47.0 // traces: sends them to a collector
	go.opentelemetry.io/otel/sdk v1.47.0 // traces: records spans
	go.opentelemetry.io/otel/trace v1.47.0 // traces: spans
	go.opentelemetry.io/proto/otlp v1.11.0 // tests: reads what was sent to a collector
	go.uber.org/goleak v1.3.0 // tests: no goroutine is left
	go.yaml.in/yaml/v4 v4.0.0 // YAML with line numbers, for mistakes in dialects
	golang.org/x/sync v0.25.0 // errgroup
	golang.org/x/text v0.44.0 // plurals and languages of notifications
	golang.org/x/time v0.16.0 // token buckets
	google.golang.org/protobuf v1.36.12 // tests: the encoding of OTLP
	modernc.org/sqlite v1.62.0 // SQLite without cgo: one static binary
	pgregory.net/rapid v1.3.0 // tests: models and properties
)

require (
	github.com/VictoriaMetrics/metrics v1.35.3 // indirect
	github.com/apapsch/go-jsonmerge/v2 v2.0.0 // indirect
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/cenkalti/backoff/v5 v5.0.3 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/dustin/go-humanize v1.1.0 // indirect
	github.com/go-logr/logr v1.4.4 // indirect
	github.com/go-logr/stdr v1.2.2 // indirect
	github.com/go-openapi/jsonpointer v1.0.0 // indirect
	github.com/grpc-ecosystem/grpc-gateway/v2 v2.30.0 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
	github.com/labstack/gommon v0.5.0 // indirect
	github.com/mattn/go-colorable v0.1.15 // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/ncruces/go-strftime v1.1.0 // indirect
	github.com/prometheus/client_model v0.6.3 // indirect
	github.com/prometheus/common v0.72.0 // indirect
	github.com/prometheus/procfs v0.23.0 // indirect
	github.com/remyoudompheng/bigfft v0.0.0-20230129092748-24d4a6f8daec // indirect
	github.com/riverqueue/river/rivershared v0.51.2 // indirect
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3 // indirect
	github.com/tidwall/gjson v1.20.0 // indirect
	github.com/tidwall/match v1.2.0 // indirect
	github.com/tidwall/pretty v1.2.1 // indirect
	github.com/tidwall/sjson v1.2.5 // indirect
	github.com/valyala/bytebufferpool v1.0.0 // indirect
	github.com/valyala/fastrand v1.1.0 // indirect
	github.com/valyala/fasttemplate v1.2.2 // indirect
	github.com/valyala/histogram v1.2.0 // indirect
	github.com/vmihailenco/tagparser/v2 v2.0.0 // indirect
	go.opentelemetry.io/auto/sdk v1.2.1 // indirect
	go.opentelemetry.io/otel/exporters/otlp/otlptrace v1.47.0 // indirect
	go.opentelemetry.io/otel/log v1.47.0 // indirect
	go.opentelemetry.io/otel/metric v1.47.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	go.yaml.in/yaml/v3 v3.0.6 // indirect
	golang.org/x/crypto v0.58.0 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
	google.golang.org/genproto/googleapis/api v0.0.0-20260928230214-8a89bd6388cc // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260928230214-8a89bd6388cc // indirect
	google.golang.org/grpc v1.83.2 // indirect
	modernc.org/libc v1.80.2 // indirect
	modernc.org/mathutil v1.7.1 // indirect
	modernc.org/memory v1.12.1 // indirect
)
