package tools_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/pkg/cluster/overview"
	"berth.dev/berth/test/harness/box"
)

// workloadsAreListed asks for workloads as the administrator and as a tenant who may read the pods of one namespace
// alone.
func workloadsAreListed(t *testing.T, shared *box.Box) {
	runPod(t, shared, "listed", "berth-scheduler")
	config := "--kubeconfig=" + shared.Kubeconfig()
	status, out, said := berth(t, "status", config)
	if status != 0 || !strings.Contains(out, "scheduler  healthy: ") {
		t.Errorf("status: %d, %s%s", status, out, said)
	}
	rbac := shared.Client.RbacV1()
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "tenant", Namespace: "default"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}}},
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "tenant"}},
	}
	if _, err := rbac.Roles("default").Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := rbac.RoleBindings("default").Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for who, tc := range map[string]struct {
		args    []string
		leftOut int
	}{
		"the administrator, of all namespaces": {[]string{"-A"}, 0},
		"the administrator's own":              {[]string{"--mine"}, 0},
		"a tenant, of one namespace":           {[]string{"-n", "default", "--as=tenant"}, 5},
	} {
		var list overview.JobList
		box.Await(t, who, func(context.Context) (bool, error) {
			status, out, said = berth(t, append([]string{"jobs", "-o", "json", config}, tc.args...)...)
			return status == 0, nil
		})
		if err := json.Unmarshal([]byte(out), &list); err != nil {
			t.Fatalf("%s: %v\n%s%s", who, err, out, said)
		}
		found := false
		for i := range list.Jobs {
			j := &list.Jobs[i]
			found = found || j.Kind == "Pod" && j.Name == "listed" && j.State == overview.JobRunning
		}
		if !found || len(list.LeftOut) != tc.leftOut || said != "" {
			t.Errorf("%s: found %t, left out %q, said %q", who, found, list.LeftOut, said)
		}
	}
	for _, args := range [][]string{{"jobs", "-A"}, {"status"}, {"top", "--once"}, {"explain", "pod", "listed"}} {
		if status, _, said := berth(t, append(args, "--as=tenant", config)...); status != 1 ||
			!strings.Contains(said, `at the cluster scope; "berth jobs -n NAMESPACE" needs`) {
			t.Errorf("a tenant, of all namespaces: %v: %d, %s", args, status, said)
		}
	}
}
