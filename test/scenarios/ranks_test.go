package scenarios_test

import (
	"fmt"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gang/ranks"
	"berth.dev/berth/pkg/gang/read/numbering"
)

// checkRanks compares how often the ring over the ranks of bound pods leaves a domain ("crossings"), or in how many
// domains their segments of some length are at most ("segments:8").
func (w *world) checkRanks(pods []*v1.Pod, key, label, want string) error {
	var members []ranks.Member
	var indices []ranks.Index
	for _, p := range pods {
		node, err := w.nodes.Get(p.Spec.NodeName)
		index, numbered := numbering.IndexOf(p)
		if err != nil || !numbered || p.DeletionTimestamp != nil {
			continue
		}
		members = append(members, ranks.Member{Path: []string{node.Labels[label]}})
		indices = append(indices, index)
	}
	for i, rank := range ranks.Number(indices) {
		members[i].Rank = rank
	}
	got := 0
	if size, segments := strings.CutPrefix(key, "segments:"); segments {
		length, err := strconv.Atoi(size)
		if err != nil {
			return err
		}
		domains := map[int]map[string]bool{}
		for _, m := range members {
			segment := m.Rank / length
			if domains[segment] == nil {
				domains[segment] = map[string]bool{}
			}
			domains[segment][m.Path[0]] = true
			got = max(got, len(domains[segment]))
		}
	} else if len(members) > 0 {
		got = ranks.Crossings(members)[0]
	}
	if strconv.Itoa(got) != want {
		return fmt.Errorf("%s of %s is %d for %d pods with ranks, want %s", key, label, got, len(members), want)
	}
	return nil
}
