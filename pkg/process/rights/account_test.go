package rights

import (
	"strings"
	"testing"

	"berth.dev/berth/test/harness/assert"
)

func TestAccounts(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		value string
		want  *Account
		fails string
	}{
		"the own account": {value: "self"},
		"a service account": {value: "kube-system/berth-scheduler",
			want: ServiceAccount("kube-system", "berth-scheduler")},
		"a service account by its user name": {value: "system:serviceaccount:kube-system:berth-scheduler",
			want: ServiceAccount("kube-system", "berth-scheduler")},
		"a user": {value: "jane",
			want: &Account{User: "jane", Groups: []string{"system:authenticated"}}},
		"a component": {value: "system:kube-scheduler", want: &Account{User: "system:kube-scheduler",
			Groups: []string{"system:authenticated"}}},
		"nobody":                              {fails: "is empty; must be"},
		"blanks":                              {value: " ", fails: "is empty; must be"},
		"a service account without a name":    {value: "kube-system/", fails: `"kube-system/"; must be namespace/name`},
		"a service account without namespace": {value: "/x", fails: `"/x"; must be namespace/name`},
		"half a service account's user name":  {value: "system:serviceaccount:berth", fails: `"system:serviceaccount:berth"; must be namespace/name`},
		"two ways at once":                    {value: "system:serviceaccount:a/b", fails: `"system:serviceaccount:a/b"; must be namespace/name`},
		"too many parts":                      {value: "a/b/c", fails: `"a/b/c"; must be namespace/name`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := ParseAccount(test.value)
			if (err == nil) != (test.fails == "") || err != nil && !strings.Contains(err.Error(), test.fails) {
				t.Fatalf("error %v, want %q", err, test.fails)
			}
			assert.Equal(t, "", test.want, got)
		})
	}
}
