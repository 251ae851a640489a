package manifests_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"

	"berth.dev/berth/pkg/gpu/gpuview"
)

func TestThePolicyOfDevicesNamesEveryKeyOfEveryDialect(t *testing.T) {
	t.Parallel()
	for _, object := range build(t, "admission") {
		policy, ok := object.(*admissionv1.ValidatingAdmissionPolicy)
		if !ok || policy.Name != "berth-pod-devices" {
			continue
		}
		for name, keys := range map[string][]string{"answers": gpuview.AnswerKeys(), "requests": gpuview.AskingKeys()} {
			want := "['" + strings.Join(keys, "', '") + "']"
			i := slices.IndexFunc(policy.Spec.Variables, func(v admissionv1.Variable) bool { return v.Name == name })
			if diff := cmp.Diff(want, policy.Spec.Variables[i].Expression); diff != "" {
				t.Errorf("variable %s (-keys +policy):\n%s", name, diff)
			}
		}
		return
	}
	t.Error("no policy")
}

func TestThePoliciesNameEveryShippedProfile(t *testing.T) {
	t.Parallel()
	shipped := profiles(t, "base/scheduler-config.yaml")
	found := 0
	check := func(name, list string) {
		found++
		names := strings.Split(strings.Trim(list, "[]'"), "', '")
		for _, profile := range names {
			if _, ok := shipped[profile]; !ok {
				t.Errorf("%s names %s, which is no profile", name, profile)
			}
		}
		if len(names) != len(shipped) {
			t.Errorf("%s names %d profiles of %d", name, len(names), len(shipped))
		}
	}
	for _, object := range build(t, "admission") {
		switch policy := object.(type) {
		case *admissionv1.ValidatingAdmissionPolicy:
			for _, v := range policy.Spec.Variables {
				if v.Name == "profiles" {
					check(policy.Name, v.Expression)
				}
			}
		case *admissionv1.MutatingAdmissionPolicy:
			for _, v := range policy.Spec.Variables {
				if v.Name == "profiles" {
					check(policy.Name, v.Expression)
				}
			}
		}
	}
	if found != 2 {
		t.Errorf("found %d lists of profiles, want 2", found)
	}
}
