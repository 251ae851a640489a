package showback

import (
	"errors"
	"fmt"
	"strings"
)

// None is the key of pods that have none: they are in no gang, or lack the label.
const None = "(none)"

// By says by what pods are told apart.
type By struct {
	kind, label string
}

// What pods can be told apart by.
const (
	byNamespace = "namespace"
	byGang      = "gang"
	labelPrefix = "label="
)

// ParseBy reads namespace, gang or label=KEY.
func ParseBy(text string) (By, error) {
	if text == byNamespace || text == byGang {
		return By{kind: text}, nil
	}
	key, isLabel := strings.CutPrefix(text, labelPrefix)
	if !isLabel {
		return By{}, fmt.Errorf("%q is not allowed; want namespace, gang or label=KEY", text)
	}
	if err := labelKey(key); err != nil {
		return By{}, fmt.Errorf("label %q: %w", key, err)
	}
	return By{kind: labelPrefix, label: key}, nil
}

// labelKey checks the key of a label: a name, with a DNS name and a slash before it or not.
func labelKey(key string) error {
	prefix, name, found := strings.Cut(key, "/")
	if !found {
		prefix, name = "", key
	}
	ok := len(name) >= 1 && len(name) <= 63 && alphanumeric(name[0]) && alphanumeric(name[len(name)-1])
	for _, c := range []byte(name) {
		ok = ok && (alphanumeric(c) || c == '-' || c == '_' || c == '.')
	}
	if !ok || found && !dnsName(prefix) {
		return errors.New("not the key of a label; want one such as team or example.com/team")
	}
	return nil
}

// dnsName reports whether the text is parts of lower-case letters, digits and inner hyphens, joined by dots.
func dnsName(text string) bool {
	for part := range strings.SplitSeq(text, ".") {
		if part == "" || part[0] == '-' || part[len(part)-1] == '-' ||
			strings.Trim(part, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			return false
		}
	}
	return len(text) <= 253
}

func alphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// Gangs says that pods are told apart by their gangs.
func (b By) Gangs() bool { return b.kind == byGang }

// Label is the key of the label by which pods are told apart, if it is a label.
func (b By) Label() (key string, ok bool) { return b.label, b.kind == labelPrefix }

func (b By) String() string { return b.kind + b.label }

// Pod is what of a pod decides on its key.
type Pod struct {
	Namespace string
	// Gang is empty for a pod that is in none.
	Gang   string
	Labels map[string]string
}

// Key is that of a pod. Gangs of one name in two namespaces are two.
func (b By) Key(p Pod) string {
	key := ""
	switch {
	case b.kind == byNamespace:
		key = p.Namespace
	case b.kind == labelPrefix:
		key = p.Labels[b.label]
	case p.Gang != "":
		key = p.Namespace + "/" + p.Gang
	}
	if key == "" {
		return None
	}
	return key
}
