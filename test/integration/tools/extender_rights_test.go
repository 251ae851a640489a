package tools_test

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/box"
)

// extendersWithoutARight lack the rights to one resource of one shipped rule each.
func extendersWithoutARight(t *testing.T, shared *box.Box) {
	rules := rulesOf(t, "extender/rbac.yaml")
	lacks := func(t *testing.T, lacking rbacv1.PolicyRule, resource string) *extender {
		t.Helper()
		var rest []rbacv1.PolicyRule
		for _, rule := range rules {
			if slices.Equal(rule.APIGroups, lacking.APIGroups) && slices.Equal(rule.Verbs, lacking.Verbs) {
				rule.Resources = slices.DeleteFunc(slices.Clone(rule.Resources), func(r string) bool { return r == resource })
			}
			if len(rule.Resources) > 0 {
				rest = append(rest, rule)
			}
		}
		who := newAccount(t, shared, "extender-"+strings.ReplaceAll(lacking.Verbs[0]+"-"+resource, "/", "-"), rest)
		return startExtender(t, who.kubeconfig(t, nil))
	}
	tested := 0
	for _, rule := range rules {
		for _, resource := range rule.Resources {
			tested++
			t.Run(strings.Join(rule.Verbs, ",")+" "+resource, func(t *testing.T) {
				e := lacks(t, rule, resource)
				// The stance of PriorityClasses is not waited for.
				if slices.Contains(rule.Verbs, "watch") && resource != "priorityclasses" {
					e.awaitReady(t, "has not seen the whole cluster")
					return
				}
				e.awaitReady(t, "ok")
				said := e.filter(t, `{"Pod":{"spec":{"containers":[{"resources":{"requests":{"nvidia.com/gpu":"4"}}}]},`+
					`"metadata":{"name":"p","annotations":{"berth.dev/gpu-memory-min":"40Gi"}}},"NodeNames":["asked-0","t4-0"]}`)
				assert.Contains(t, said, `"NodeNames":["asked-0"]`)
			})
		}
	}
	if tested < 10 {
		t.Errorf("tested %d rights, want those of the shipped roles", tested)
	}
}
