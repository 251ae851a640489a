package podview

import (
	"testing"

	"sigs.k8s.io/yaml"

	networkv1alpha1 "berth.dev/berth/pkg/apis/network/v1alpha1"
)

// FuzzAddressPool reads an IPPool as it stands in a file.
func FuzzAddressPool(f *testing.F) {
	for _, seed := range []string{
		"spec: {subnets: [{ranges: [10.0.0.0/29], domain: {key: rack, value: a}}]}",
		"spec: {subnets: [{ranges: ['fd00::1-fd00::9']}, {ranges: ['fd00::5']}]}",
		"spec: {subnets: [{ranges: [0.0.0.0/0, '::/0']}]}", "spec: {subnets: [{}]}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var object networkv1alpha1.IPPool
		if yaml.Unmarshal([]byte(text), &object) != nil {
			return
		}
		pool, problems := AddressPool(&object)
		if (pool.Problem == "") != (len(problems) == 0) || pool.Problem != "" && len(pool.Domains) > 0 {
			t.Fatalf("problem %q, %d problems, %d subnets", pool.Problem, len(problems), len(pool.Domains))
		}
	})
}
