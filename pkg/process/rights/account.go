package rights

import (
	"fmt"
	"strings"
)

// OwnAccount stands for the account with which the cluster is asked.
const OwnAccount = "self"

// ParseAccount reads whose rights are meant: a service account as namespace/name or by its user name, any other user,
// or OwnAccount, for which it returns nil.
func ParseAccount(value string) (*Account, error) {
	const allowed = "must be namespace/name of a service account, a user name, or " + OwnAccount
	if value == OwnAccount {
		return nil, nil //nolint:nilnil // there is no other account
	}
	if strings.TrimSpace(value) == "" {
		return nil, fmt.Errorf("is empty; %s", allowed)
	}
	if namespace, name, found := strings.Cut(value, "/"); found {
		if namespace == "" || name == "" || strings.Contains(name, "/") || strings.Contains(value, ":") {
			return nil, fmt.Errorf("%q; %s", value, allowed)
		}
		return ServiceAccount(namespace, name), nil
	}
	if account, found := strings.CutPrefix(value, "system:serviceaccount:"); found {
		namespace, name, _ := strings.Cut(account, ":")
		// As a user without the groups of service accounts it would seem to have fewer rights than it has.
		if namespace == "" || name == "" || strings.Contains(name, ":") {
			return nil, fmt.Errorf("%q; %s", value, allowed)
		}
		return ServiceAccount(namespace, name), nil
	}
	return &Account{User: value, Groups: []string{"system:authenticated"}}, nil
}
