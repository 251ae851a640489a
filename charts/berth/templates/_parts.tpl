{{- /* The objects of a copied manifest, with what is in the namespace of the scheduler moved to that of the release. Roles and their
bindings stay: the leases and the request-header CA are in kube-system. Takes the root and a file. */ -}}
{{- define "berth.objects" -}}
{{- $namespace := .root.Release.Namespace }}
{{- range splitList "\n---\n" (.root.Files.Get .file) }}
{{- $object := fromYaml . }}
{{- if not (has $object.kind (list "Role" "RoleBinding")) }}
{{- with $object.metadata.namespace }}
{{- $_ := set $object.metadata "namespace" $namespace }}
{{- end }}
{{- end }}
{{- range $object.subjects }}
{{- if .namespace }}{{- $_ := set . "namespace" $namespace }}{{- end }}
{{- end }}
---
{{ toYaml $object }}
{{- end }}
{{- end }}

{{- /* The name of an image, by its digest if there is one, else by its tag. Takes the image and the tag of this release. */ -}}
{{- define "berth.image" -}}
{{- $image := index . 0 -}}
{{ $image.repository }}{{ if $image.digest }}@{{ $image.digest }}{{ else }}:{{ $image.tag | default (index . 1) }}{{ end }}
{{- end }}
