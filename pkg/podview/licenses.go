package podview

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/wellknown"
)

const (
	// mostPolicyNames bounds the licenses or datasets of a pod, and mostLicenses the amount of one license.
	mostPolicyNames = 16
	mostLicenses    = 1_000_000

	licensesAllowed = "a list of at most 16 licenses, each once, such as matlab=2,ansys"
	datasetsAllowed = "a list of at most 16 datasets, each once, such as imagenet,laion"
)

// policyName matches names of licenses and datasets.
var policyName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$`)

// License is an amount of a license that a pod asks for.
type License struct {
	Name   string
	Amount int64
}

// PodLicenses returns the licenses that the pod asks for, sorted by name.
func PodLicenses(pod *v1.Pod) ([]License, *wellknown.BadValue) {
	licenses, ok := namesIn(pod, wellknown.LicensesKey, true)
	if !ok {
		return nil, BadAnnotation(pod, wellknown.LicensesKey, licensesAllowed)
	}
	return licenses, nil
}

// PodDatasets returns the datasets that the pod names, sorted.
func PodDatasets(pod *v1.Pod) ([]string, *wellknown.BadValue) {
	named, ok := namesIn(pod, wellknown.DatasetsKey, false)
	if !ok {
		return nil, BadAnnotation(pod, wellknown.DatasetsKey, datasetsAllowed)
	}
	var datasets []string
	for _, d := range named {
		datasets = append(datasets, d.Name)
	}
	return datasets, nil
}

// namesIn reads a list of names, which may have amounts if counted is set; ok is false for a bad value. A pod without
// the annotation has none.
func namesIn(pod *v1.Pod, key string, counted bool) (names []License, ok bool) {
	value, ok := pod.Annotations[key]
	if !ok {
		return nil, true
	}
	for part := range strings.SplitSeq(value, ",") {
		name, text, hasAmount := strings.Cut(strings.TrimSpace(part), "=")
		// The clone does not keep the whole value in memory, which may be long.
		one := License{Name: strings.Clone(strings.TrimSpace(name)), Amount: 1}
		if hasAmount {
			amount, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
			if err != nil || amount < 1 || amount > mostLicenses || !counted {
				return nil, false
			}
			one.Amount = amount
		}
		twice := slices.ContainsFunc(names, func(l License) bool { return l.Name == one.Name })
		if !policyName.MatchString(one.Name) || twice || len(names) == mostPolicyNames {
			return nil, false
		}
		names = append(names, one)
	}
	slices.SortFunc(names, func(a, b License) int { return strings.Compare(a.Name, b.Name) })
	return names, true
}
