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
	// mostPolicyNames is how many licenses or datasets a pod may name, mostLicenses how many of one license it may use.
	mostPolicyNames = 16
	mostLicenses    = 1_000_000

	licensesAllowed = "a list of at most 16 licenses, each once, such as matlab=2,ansys"
	datasetsAllowed = "a list of at most 16 datasets, each once, such as imagenet,laion"
)

// policyName is what licenses and datasets may be called.
var policyName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$`)

// License is an amount of a license that a pod asks for.
type License struct {
	Name   string
	Amount int64
}

// PodLicenses returns the licenses that the pod asks for, sorted by name.
func PodLicenses(pod *v1.Pod) ([]License, *wellknown.BadValue) {
	value, ok := pod.Annotations[wellknown.LicensesKey]
	if !ok {
		return nil, nil
	}
	licenses, ok := parseLicenses(value)
	if !ok {
		return nil, &wellknown.BadValue{Object: "pod", Kind: "annotation", Key: wellknown.LicensesKey, Value: value,
			Allowed: licensesAllowed}
	}
	return licenses, nil
}

// parseLicenses reads the annotation and reports whether it can be read.
func parseLicenses(value string) (licenses []License, ok bool) {
	for part := range strings.SplitSeq(value, ",") {
		name, text, counted := strings.Cut(strings.TrimSpace(part), "=")
		license := License{Name: strings.TrimSpace(name), Amount: 1}
		if counted {
			amount, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
			if err != nil || amount < 1 || amount > mostLicenses {
				return nil, false
			}
			license.Amount = amount
		}
		twice := slices.ContainsFunc(licenses, func(l License) bool { return l.Name == license.Name })
		if !policyName.MatchString(license.Name) || twice || len(licenses) == mostPolicyNames {
			return nil, false
		}
		// What is remembered of the pod must not keep the whole value in memory, which spaces may fill up.
		license.Name = strings.Clone(license.Name)
		licenses = append(licenses, license)
	}
	slices.SortFunc(licenses, func(a, b License) int { return strings.Compare(a.Name, b.Name) })
	return licenses, true
}

// PodDatasets returns the datasets that the pod names, sorted.
func PodDatasets(pod *v1.Pod) ([]string, *wellknown.BadValue) {
	value, ok := pod.Annotations[wellknown.DatasetsKey]
	if !ok {
		return nil, nil
	}
	datasets, ok := parseDatasets(value)
	if !ok {
		return nil, &wellknown.BadValue{Object: "pod", Kind: "annotation", Key: wellknown.DatasetsKey, Value: value,
			Allowed: datasetsAllowed}
	}
	return datasets, nil
}

// parseDatasets reads the annotation and reports whether it can be read.
func parseDatasets(value string) (datasets []string, ok bool) {
	for part := range strings.SplitSeq(value, ",") {
		name := strings.TrimSpace(part)
		if !policyName.MatchString(name) || slices.Contains(datasets, name) || len(datasets) == mostPolicyNames {
			return nil, false
		}
		datasets = append(datasets, strings.Clone(name)) // as with licenses
	}
	slices.Sort(datasets)
	return datasets, true
}
