package dryrun

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/steps"
	"berth.dev/berth/pkg/gangplan"
	"berth.dev/berth/pkg/gangview"
)

func uids(members []gang.Member) (out []gang.UID) {
	for _, m := range members {
		out = append(out, m.UID)
	}
	return out
}

func TestTheFirstRanksComeFirst(t *testing.T) {
	t.Parallel()
	pods := map[string]*v1.Pod{}
	var members []gang.Member
	for i, rank := range []int{10, -1, 2, 0} {
		pod := &v1.Pod{}
		if rank >= 0 {
			gangview.SetIndex(pod, rank)
		}
		name := fmt.Sprint("p", i)
		pods[name] = pod
		members = append(members, gang.Member{Ref: gang.Ref{UID: gang.UID(name), Name: name}})
	}
	p := &Planner{Sources: Sources{Pod: func(r gang.Ref) *v1.Pod { return pods[r.Name] }}}
	if diff := cmp.Diff([]gang.UID{"p3", "p2", "p0", "p1"}, uids(p.byRank(members))); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

// anywhere has room for some members.
type anywhere struct{ left *int }

func (a anywhere) Place(m gang.Member) (gang.Assignment, bool, error) {
	*a.left--
	return gang.Assignment{UID: m.UID}, *a.left >= 0, nil
}

func (anywhere) Spent() bool { return false }

func TestAPlanEndsOnAStep(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		size       steps.Size
		held, room int
		want       []gang.UID
	}{
		"what is beyond a step is left out":        {steps.Double, 0, 7, []gang.UID{"0", "1", "2", "3"}},
		"several steps are taken at once":          {"3", 2, 7, []gang.UID{"0", "1", "2", "3", "4", "5"}},
		"what is lacking to a step is filled up":   {steps.Double, 3, 4, []gang.UID{"0"}},
		"without steps all go that have room":      {"", 0, 5, []gang.UID{"0", "1", "2", "3", "4"}},
		"a plan that is not enough stays as it is": {steps.Double, 0, 1, []gang.UID{"0"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			noRole := func(string) int { return 0 }
			turn := gang.Turn{Steps: steps.Ladder{Minimum: gang.Minimum{Total: 2}, By: tc.size}, Held: tc.held, HeldIn: noRole}
			turn.Of = turn.Steps.Minimum
			if tc.held > 0 {
				turn.Of = turn.Steps.Next(tc.held, noRole)
			}
			turn.Need.Total = turn.Of.Total - tc.held
			for i := range 8 {
				turn.Members = append(turn.Members, gang.Member{Ref: gang.Ref{UID: gang.UID(fmt.Sprint(i))}})
			}
			result, _, err := gangplan.Build(turn.Members, turn.Need, func(string) float64 { return 0 },
				func() (anywhere, error) { return anywhere{&tc.room}, nil })
			if err != nil {
				t.Fatal(err)
			}
			plan := &Plan{Result: result}
			plan.endOnStep(turn)
			got := slices.Collect(func(yield func(gang.UID) bool) {
				for _, a := range plan.Assignments {
					if !yield(a.UID) {
						return
					}
				}
			})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("planned (-want +got):\n%s", diff)
			}
		})
	}
}
