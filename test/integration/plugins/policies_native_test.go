package plugins_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/test/harness/box"
)

// testNativeLicenses is about groups of the scheduler's core whose members use licenses.
func testNativeLicenses(t *testing.T, b *box.Box) {
	p := &policies{b.Part(t, "licenses", regions)}
	t.Run("a group waits until there are licenses for all of it", func(t *testing.T) {
		p.mustApply(t, "tools", `{licenses: [{name: matlab, count: 2}]}`)
		p.nativeGroup(t, "g", 3)
		p.refused(t, "g", 3, "0 of 2 in use and 2 about to be")
		p.NoneBound(t, numbered("g", 3)...)
		p.mustApply(t, "tools", `{licenses: [{name: matlab, count: 3}]}`)
		p.wholeBound(t, "g", 3)
	})
	t.Run("of two groups one starts and the other follows it", func(t *testing.T) {
		p.nativeGroup(t, "late", 2)
		p.refused(t, "late", 2, "3 of 3 in use")
		p.Remove(t, "g-0")
		p.refused(t, "late", 2, "2 of 3 in use and 1 about to be")
		p.NoneBound(t, numbered("late", 2)...)
		p.Remove(t, "g-1")
		p.wholeBound(t, "late", 2)
	})
	t.Run("a single pod counts against a group", func(t *testing.T) {
		for _, name := range []string{"g-2", "late-0", "late-1"} {
			p.Remove(t, name)
		}
		p.Create(t, using("matlab", "single"))
		p.Bound(t, "single", "")
		p.nativeGroup(t, "third", 3)
		p.refused(t, "third", 3, "1 of 3 in use and 2 about to be")
		p.NoneBound(t, numbered("third", 3)...)
		p.Remove(t, "single")
		p.wholeBound(t, "third", 3)
	})
	t.Run("pools on two nodes are counted each", func(t *testing.T) {
		for i := range 3 {
			p.Remove(t, fmt.Sprint("third-", i))
		}
		p.mustApply(t, "tools", `{licenses: [{name: a, license: matlab, count: 1, nodes: {selector: {matchLabels: {pool: a}}}},
{name: b, license: matlab, count: 1, nodes: {selector: {matchLabels: {pool: b}}}}]}`)
		p.nativeGroup(t, "wide", 3)
		p.refused(t, "wide", 3, "0 of 1 in use and 1 about to be")
		p.NoneBound(t, numbered("wide", 3)...)
		p.nativeGroup(t, "fits", 2)
		p.wholeBound(t, "fits", 2)
	})
	t.Run("the count holds over a restart", func(t *testing.T) {
		p.KillScheduler(t)
		p.Create(t, using("matlab", "after"))
		p.Pending(t, "after", "1 of 1 in use")
		p.NoneBound(t, numbered("wide", 3)...)
	})
}

func (p *policies) nativeGroup(t *testing.T, name string, members int) {
	t.Helper()
	nativeGroup(t, p.Box, name, members, func(name string) *v1.Pod { return using("matlab", name) })
}

// refused waits until a member is told that a license is missing; the others are told of the group.
func (p *policies) refused(t *testing.T, name string, members int, reason string) {
	t.Helper()
	names := numbered(name, members)
	p.AwaitPods(t, fmt.Sprintf("a member of %s to be pending because %q", name, reason),
		func(pods []*v1.Pod) (bool, error) {
			return slices.ContainsFunc(pods, func(pod *v1.Pod) bool {
				return slices.Contains(names, pod.Name) && strings.Contains(box.Reason(pod), "without a free license matlab: "+
					reason)
			}), nil
		})
}

func (p *policies) wholeBound(t *testing.T, name string, members int) {
	t.Helper()
	for _, name := range numbered(name, members) {
		p.Bound(t, name, "")
	}
}
