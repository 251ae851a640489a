{{- /* Labels of every object and pod of a release. */ -}}
{{- define "berth.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: berth
{{- end }}

{{- /* An object with these labels. Takes the root and the object. */ -}}
{{- define "berth.object" -}}
{{- $labels := merge (include "berth.labels" .root | fromYaml) (.object.metadata.labels | default dict) }}
{{- $_ := set .object.metadata "labels" $labels }}
---
{{ toYaml .object }}
{{ end }}

{{- /* The name of the account of a part. Takes the part: the root, its name and its values. */ -}}
{{- define "berth.account" -}}
{{ .values.serviceAccount.name | default (printf "berth-%s" .name) }}
{{- end }}

{{- /* The objects of a copied manifest, with what is in the namespace of the scheduler moved to that of the release, and the account
of the part in roles and policies. Roles and their bindings stay: the lease and the request-header CA are in kube-system. Takes the
part and a file. */ -}}
{{- define "berth.objects" -}}
{{- $root := .root }}
{{- $name := printf "berth-%s" .name }}
{{- $account := include "berth.account" . }}
{{- $settings := .values.serviceAccount }}
{{- range splitList "\n---\n" (.root.Files.Get .file) }}
{{- $object := fromYaml . }}
{{- $wanted := true }}
{{- if and (hasSuffix "-hami" $object.metadata.name) (not $root.Values.hami.enabled) }}
{{- $wanted = false }}
{{- end }}
{{- if and $object.metadata.namespace (not (has $object.kind (list "Role" "RoleBinding" "ConfigMap"))) }}
{{- $_ := set $object.metadata "namespace" $root.Release.Namespace }}
{{- end }}
{{- range $object.subjects }}
{{- if eq .name $name }}
{{- $_ := set . "name" $account }}
{{- $_ := set . "namespace" $root.Release.Namespace }}
{{- end }}
{{- end }}
{{- if eq $object.kind "ServiceAccount" }}
{{- $wanted = $settings.create }}
{{- $_ := set $object.metadata "name" $account }}
{{- with $settings.annotations }}
{{- $_ := set $object.metadata "annotations" . }}
{{- end }}
{{- end }}
{{- if eq $object.kind "ValidatingAdmissionPolicy" }}
{{- $user := printf "request.userInfo.username == 'system:serviceaccount:%s:%s'" $root.Release.Namespace $account }}
{{- $_ := set (index $object.spec.matchConditions 0) "expression" $user }}
{{- end }}
{{- if $wanted }}
{{- include "berth.object" (dict "root" $root "object" $object) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* The name of an image, by its digest if there is one, else by its tag. Takes the image and the tag of this release. */ -}}
{{- define "berth.image" -}}
{{- $image := index . 0 -}}
{{ $image.repository }}{{ if $image.digest }}@{{ $image.digest }}{{ else }}:{{ $image.tag | default (index . 1) }}{{ end }}
{{- end }}

{{- /* The argument that keeps a part that is a scheduler from being newer than the API server, unless the values have one. Takes the
part. */ -}}
{{- define "berth.emulate" -}}
{{- $server := .root.Capabilities.KubeVersion.Version }}
{{- $older := semverCompare (printf "<%s.0-0" (index .root.Chart.Annotations "berth.dev/kubernetes")) $server }}
{{- if and $older (ne .name "node-agent") (not (contains "--emulated-version" (toJson .values.extraArgs))) }}
{{- printf "[--emulated-version=%d.%d]" (semver $server).Major (semver $server).Minor }}
{{- end }}
{{- end }}

{{- /* Sets what the values say of the pods of a Deployment or DaemonSet. Takes the part and the object. */ -}}
{{- define "berth.pods" -}}
{{- $values := .values }}
{{- $selector := .object.spec.selector }}
{{- $template := .object.spec.template }}
{{- $pod := $template.spec }}
{{- $container := index $pod.containers 0 }}
{{- $_ := set .object.metadata "namespace" .root.Release.Namespace }}
{{- $own := merge (deepCopy $template.metadata.labels) (include "berth.labels" .root | fromYaml) }}
{{- $_ := set $template.metadata "labels" (merge $own ($values.podLabels | default dict)) }}
{{- $annotations := merge ($template.metadata.annotations | default dict) ($values.podAnnotations | default dict) }}
{{- with $annotations }}
{{- $_ := set $template.metadata "annotations" . }}
{{- end }}
{{- $_ := set $pod "serviceAccountName" (include "berth.account" .) }}
{{- $_ := unset $pod "priorityClassName" }}
{{- with $values.priorityClassName }}
{{- $_ := set $pod "priorityClassName" . }}
{{- end }}
{{- with .root.Values.imagePullSecrets }}
{{- $_ := set $pod "imagePullSecrets" . }}
{{- end }}
{{- range $key := list "nodeSelector" "tolerations" "affinity" }}
{{- $_ := unset $pod $key }}
{{- with index $values $key }}
{{- $_ := set $pod $key . }}
{{- end }}
{{- end }}
{{- $_ := set $container "image" (include "berth.image" (list $values.image .root.Chart.AppVersion)) }}
{{- $_ := set $container "imagePullPolicy" $values.image.pullPolicy }}
{{- $_ := set $container "resources" ($values.resources | default dict) }}
{{- $_ := set $container "args" (concat $container.args (include "berth.emulate" . | fromYamlArray) ($values.extraArgs | default list)) }}
{{- with concat ($container.env | default list) ($values.extraEnv | default list) }}
{{- $_ := set $container "env" . }}
{{- end }}
{{- with concat ($container.volumeMounts | default list) ($values.extraVolumeMounts | default list) }}
{{- $_ := set $container "volumeMounts" . }}
{{- end }}
{{- with concat ($pod.volumes | default list) ($values.extraVolumes | default list) }}
{{- $_ := set $pod "volumes" . }}
{{- end }}
{{- if hasKey $pod "topologySpreadConstraints" }}
{{- $constraints := list }}
{{- range $values.topologySpreadConstraints }}
{{- $constraint := deepCopy . }}
{{- if not (hasKey . "labelSelector") }}
{{- $_ := set $constraint "labelSelector" $selector }}
{{- end }}
{{- $constraints = append $constraints $constraint }}
{{- end }}
{{- $_ := set $pod "topologySpreadConstraints" $constraints }}
{{- end }}
{{- end }}
