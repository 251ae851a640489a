package plugins_test

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"berth.dev/berth/test/harness/box"
)

// tenFleet has room for every gang of the attacks. Its nodes are named after the part.
const tenFleet = `shapes:
- {name: %s, count: 10, allocatable: {cpu: "64", memory: 256Gi, pods: "500"}}
`

// tenants are two namespaces of a part.
type tenants struct{ mallory, alice *box.Box }

func newTenants(t *testing.T, b *box.Box, part string) tenants {
	t.Helper()
	b = b.Part(t, part, fmt.Sprintf(tenFleet, part))
	return tenants{b.Tenant(t, part+"-mallory", nil), b.Tenant(t, part+"-alice", nil)}
}

// member creates a pod of a gang by labels, or of none without a gang.
func member(t *testing.T, b *box.Box, name, gang string, minimum int) {
	t.Helper()
	p := pod(name, "gang-scheduler", asking(strs{"cpu": "10m"}),
		func(p *v1.Pod) { p.Spec.AutomountServiceAccountToken = ptr.To(false) })
	if gang != "" {
		ganged(gang, fmt.Sprint(minimum))(p)
	}
	b.Create(t, p)
}
