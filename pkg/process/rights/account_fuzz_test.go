package rights

import (
	"strings"
	"testing"
)

// FuzzParseAccount reads accounts: an account has a name and belongs to those who have logged in.
func FuzzParseAccount(f *testing.F) {
	for _, s := range []string{"", "self", "kube-system/berth-scheduler", "system:serviceaccount:a:b",
		"system:serviceaccount:a", "jane", "/", "a/b/c", "system:serviceaccount:a/b", " "} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, value string) {
		account, err := ParseAccount(value)
		if err != nil {
			if !strings.Contains(err.Error(), OwnAccount) {
				t.Fatalf("the error does not say what is allowed: %v", err)
			}
			return
		}
		if (account == nil) != (value == OwnAccount) {
			t.Fatalf("%q is read as %+v", value, account)
		}
		if account == nil {
			return
		}
		if account.User == "" || len(account.Groups) == 0 {
			t.Fatalf("%q is read as %+v", value, account)
		}
		if rest, service := strings.CutPrefix(account.User, "system:serviceaccount:"); service {
			namespace, name, found := strings.Cut(rest, ":")
			if !found || namespace == "" || name == "" || strings.ContainsAny(name, ":/") {
				t.Fatalf("%q is read as the service account %q", value, rest)
			}
		}
	})
}
