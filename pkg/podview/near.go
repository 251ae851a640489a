package podview

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"berth.dev/berth/pkg/wellknown"
)

const (
	// maxNear is how many selectors a pod may name, maxNearRequirements how many requirements each may have, and
	// longestNear how long all of them may be: other pods are compared with them at each change.
	maxNear             = 8
	maxNearRequirements = 8
	longestNear         = 4096
	// maxGiBPerHour is the most that a pod can say it exchanges: more than 2,000 Gbit/s.
	maxGiBPerHour = 1_000_000
	// KiBPerGiB turns what people write into what is counted with.
	KiBPerGiB = 1 << 20
)

// Near is a part of what a pod talks to: pods of its own namespace.
type Near struct {
	// Selector as text, its requirements sorted.
	Selector string
	Matches  labels.Selector
	// KiBPerHour is what the pod exchanges with all of them together, 0 if it does not say.
	KiBPerHour int64
}

const allowedNear = `a list of label selectors separated by semicolons, each with what is exchanged with these pods if that is known, ` +
	`such as "app=cache 20GiB/h; app=queue"`

// traffic ends an item of the list.
var traffic = regexp.MustCompile(`^(.*\S)\s+([0-9]+(?:\.[0-9]+)?)\s*GiB/h$`)

// PodNear reads what the pod says that it talks to.
func PodNear(pod *v1.Pod) ([]Near, *wellknown.BadValue) {
	value, ok := pod.Annotations[wellknown.NearKey]
	if !ok {
		return nil, nil
	}
	near, allowed := parseNear(value)
	if allowed != "" {
		return nil, &wellknown.BadValue{Object: "pod", Kind: "annotation", Key: wellknown.NearKey, Value: value,
			Allowed: allowed}
	}
	return near, nil
}

// parseNear reads the annotation. If it cannot be read, allowed says what it should be.
func parseNear(value string) (near []Near, allowed string) {
	items := strings.Split(value, ";")
	if len(items) > maxNear {
		return nil, fmt.Sprintf("a list of at most %d label selectors", maxNear)
	}
	if utf8.RuneCountInString(value) > longestNear {
		return nil, fmt.Sprintf("a list of label selectors of at most %d characters", longestNear)
	}
	for i, item := range items {
		item = strings.TrimSpace(item)
		n := Near{Selector: item}
		if m := traffic.FindStringSubmatch(item); m != nil {
			gib, err := strconv.ParseFloat(m[2], 64)
			if n.KiBPerHour = int64(gib * KiBPerGiB); err != nil || gib > maxGiBPerHour || n.KiBPerHour == 0 {
				return nil, fmt.Sprintf("a list in which each traffic is more than 0 and at most %d GiB/h: see item %d",
					maxGiBPerHour, i+1)
			}
			n.Selector = m[1]
		}
		selector, err := labels.Parse(n.Selector)
		if err != nil {
			return nil, fmt.Sprintf("%s: see item %d", allowedNear, i+1)
		}
		if selector.Empty() {
			return nil, fmt.Sprintf("%s: item %d selects all pods", allowedNear, i+1)
		}
		if requirements, _ := selector.Requirements(); len(requirements) > maxNearRequirements {
			return nil, fmt.Sprintf("a list of label selectors with at most %d requirements each: see item %d",
				maxNearRequirements, i+1)
		}
		n.Matches, n.Selector = selector, selector.String()
		for _, other := range near {
			if other.Selector == n.Selector {
				return nil, fmt.Sprintf("a list of different label selectors: item %d repeats an earlier one", i+1)
			}
		}
		near = append(near, n)
	}
	return near, ""
}

// MapNear returns the value of the annotation with other label values; one that cannot be read becomes empty.
func MapNear(value string, label func(key, value string) string) string {
	near, allowed := parseNear(value)
	if allowed != "" {
		return ""
	}
	items := make([]string, 0, len(near))
	for _, n := range near {
		requirements, _ := n.Matches.Requirements()
		selector := labels.NewSelector()
		for _, r := range requirements {
			values := r.ValuesUnsorted()
			if r.Operator() != selection.GreaterThan && r.Operator() != selection.LessThan {
				for i := range values {
					values[i] = label(r.Key(), values[i])
				}
			}
			mapped, err := labels.NewRequirement(r.Key(), r.Operator(), values)
			if err != nil {
				return ""
			}
			selector = selector.Add(*mapped)
		}
		item := selector.String()
		if n.KiBPerHour > 0 {
			item += " " + strconv.FormatFloat(float64(n.KiBPerHour)/KiBPerGiB, 'f', -1, 64) + "GiB/h"
		}
		items = append(items, item)
	}
	return strings.Join(items, "; ")
}

// NetworkLevel is a kind of domain in a network, such as a rack or a zone.
type NetworkLevel struct {
	// Labels of a node that may name its domain; the first that it has counts.
	Labels []string
}

// NetworkLevels are all levels of a network, the narrowest first.
type NetworkLevels []NetworkLevel

// Path returns the domain of the node at each level, the widest level first; empty where it lies in none.
func (l NetworkLevels) Path(node *v1.Node) []string {
	path := make([]string, len(l))
	for i := range l {
		for _, key := range l[i].Labels {
			if value := node.Labels[key]; value != "" {
				path[len(l)-1-i] = value
				break
			}
		}
	}
	return path
}
