// Package validate checks what deploy/ holds, as far as that goes without an engine or a
// cluster: each file is read by the code that will read it in production, and the configuration
// that it gives to a node is given to the real binary's check-config.
//
//   - Dockerfile: converted by BuildKit to a build plan, with its linter's warnings as errors, and
//     what its COPY steps take compared with what .dockerignore lets through.
//   - compose.yaml: loaded by Compose's own library with an .env of make-env.sh, schema included.
//   - Helm chart: linted and rendered by helm for several sets of values, each object held against
//     Kubernetes' schemas by kubectl-validate, and decoded strictly by its own types.
//
// It is a module of its own, so that all these libraries stay out of the gateway's. `make
// validate-deploy` runs it, with QUICK=1 without the chart.
package validate
