package dump

import (
	"fmt"
	"strings"
	"testing"

	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/test/harness/require"
)

// Accounts are numbers, and annotations hold lists, pairs and JSON: none of it is readable wherever users can write it.
func TestNothingThatUsersWriteIsReadable(t *testing.T) {
	t.Parallel()
	const account, word = "4711000123", "acme"
	annotated := []string{"example.com/account", "hami.io/vgpu-node", "kubectl.kubernetes.io/last-applied-configuration",
		wellknown.StartWindowKey, wellknown.GPUAssignedKey, wellknown.LicensesKey, wellknown.DatasetsKey, wellknown.IPPoolKey}
	labelled := []string{"example.com/account", "example.com/rank", "team", "app.kubernetes.io/instance",
		"pod-group.scheduling.sigs.k8s.io/name", "kubernetes.io/hostname"}
	pairs := func(keys []string, value string) string {
		all := make([]string, len(keys))
		for i, key := range keys {
			all[i] = fmt.Sprintf("%q:%q", key, value)
		}
		return "{" + strings.Join(all, ",") + "}"
	}
	for _, object := range []string{`
{"apiVersion":"v1","kind":"Node","metadata":{"name":"acme",META},"spec":{"providerID":"aws:///4711000123",
 "taints":[{"key":"example.com/account","value":"4711000123","effect":"NoSchedule"}]}}`, `
{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"acme",META}}`, `
{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":"acme",META},"value":1,
 "description":"acme"}`, `
{"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"PodGroup","metadata":{"name":"acme",META},
 "spec":{"minMember":1}}`, `
{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"acme",META},
 "spec":{"storageClassName":"acme","selector":{"matchLabels":{"example.com/account":"4711000123"}}}}`, `
{"apiVersion":"v1","kind":"Pod","metadata":{"name":"acme","namespace":"acme",META},"spec":{"priorityClassName":"acme",
 "nodeSelector":{"example.com/account":"4711000123"},
 "tolerations":[{"key":"example.com/account","value":"4711000123"}],
 "affinity":{
  "nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{
   "matchExpressions":[{"key":"example.com/account","operator":"In","values":["4711000123"]}]}]}},
  "podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"zone","namespaces":["acme"],
   "labelSelector":{"matchExpressions":[{"key":"example.com/account","operator":"NotIn","values":["4711000123"]}]},
   "namespaceSelector":{"matchLabels":{"example.com/account":"4711000123"}}}]}},
 "topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"ScheduleAnyway",
  "labelSelector":{"matchLabels":{"example.com/account":"4711000123"}}}],
 "hostname":"acme","volumes":[{"name":"acme","nfs":{"server":"acme","path":"/acme"}}],
 "containers":[{"name":"acme","image":"acme:acme","args":["acme"],"env":[{"name":"ACCOUNT","value":"4711000123"}]}]}}`,
	} {
		for i, value := range []string{account, word, word + "|" + word + "|Tesla-T4", `{"account": ` + account + `}`,
			word + "=" + account} {
			meta := `"annotations":` + pairs(annotated, value) + `,"labels":` + pairs(labelled, []string{account, word}[i%2])
			hashed, err := NewNameHasher([]byte("key"), usualKeys()).Hash(keptOf(t, strings.Replace(object, "META", meta, 1)))
			require.NoError(t, err)
			if text := asJSON(t, hashed); strings.Contains(text, account) || strings.Contains(text, word) {
				t.Errorf("with %s something is readable: %s", value, text)
			}
		}
	}
}
