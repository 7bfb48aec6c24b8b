{{/* The name of everything: the release's, with the chart's where the release is called otherwise. */}}
{{- define "xabar.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* What selects the pods. It never changes: a Deployment's selector can't. */}}
{{- define "xabar.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "xabar.labels" -}}
{{ include "xabar.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "xabar.image" -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}

{{/* The Secret that pods read. Without one they could not start. */}}
{{- define "xabar.secret" -}}
{{- if .Values.secret.existing -}}
{{- if .Values.secret.values -}}
{{- fail "secret.existing and secret.values exclude each other" -}}
{{- end -}}
{{- .Values.secret.existing -}}
{{- else if .Values.secret.values -}}
{{- include "xabar.name" . -}}
{{- else -}}
{{- fail "name a Secret in secret.existing, or give its contents in secret.values: XABAR_DATABASE_URL, XABAR_REDIS_URL and a key for tokens" -}}
{{- end -}}
{{- end -}}

{{/* What every container may: nothing but its work. */}}
{{- define "xabar.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- define "xabar.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end -}}
