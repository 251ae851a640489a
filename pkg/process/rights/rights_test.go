package rights

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	componentconfig "k8s.io/component-base/config"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/leak"
	"berth.dev/berth/test/harness/require"
)

func TestMain(m *testing.M) { leak.Main(m) }

// profileWith is a configuration of one profile with the plugins.
func profileWith(plugins ...string) *schedulerconfig.KubeSchedulerConfiguration {
	set := schedulerconfig.PluginSet{}
	for _, name := range plugins {
		set.Enabled = append(set.Enabled, schedulerconfig.Plugin{Name: name})
	}
	return &schedulerconfig.KubeSchedulerConfiguration{
		Profiles: []schedulerconfig.KubeSchedulerProfile{{SchedulerName: "p",
			Plugins: &schedulerconfig.Plugins{MultiPoint: set}}},
	}
}

func TestNeedsAreThoseOfTheEnabledPlugins(t *testing.T) {
	t.Parallel()
	electing := profileWith()
	electing.LeaderElection = componentconfig.LeaderElectionConfiguration{LeaderElect: true, ResourceNamespace: "ns",
		ResourceName: "mine"}
	for name, test := range map[string]struct {
		config    *schedulerconfig.KubeSchedulerConfiguration
		features  []string
		with      []string
		without   []string
		neededFor string
	}{
		"a profile without plugins needs what every scheduler needs": {
			config: profileWith(), with: []string{"get,list,watch nodes", "create pods/binding"},
			without: []string{"get,list,watch podgroups.scheduling.x-k8s.io", "get,list,watch poddisruptionbudgets.policy"},
		},
		"gangs need PodGroups and the kinds they are made of": {
			config: profileWith(coscheduling), with: []string{"get,list,watch podgroups.scheduling.x-k8s.io",
				"get,list,watch jobs.batch", "delete pods"},
			without: []string{"get,list,watch ippools.berth.dev"},
		},
		"fixed addresses": {
			config: profileWith(ipReservation), with: []string{"get,list,watch ippools.berth.dev", "patch,update pods/status",
				"get,list,watch statefulsets.apps"},
			without: []string{"get,list,watch services", "patch pods"},
		},
		"a feature gate": {
			config: profileWith(), features: []string{NativeGroups},
			with: []string{"get,list,watch podgroups.scheduling.k8s.io"},
		},
		"the lease is the one that the configuration names": {
			config: electing, with: []string{"get,update leases.coordination.k8s.io mine in ns",
				"create leases.coordination.k8s.io in ns"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, need := range joined(For(test.config, test.features...)) {
				got = append(got, need.Right())
			}
			for _, want := range test.with {
				if !slices.Contains(got, want) {
					t.Errorf("%q is not among the needs", want)
				}
			}
			for _, not := range test.without {
				if slices.Contains(got, not) {
					t.Errorf("%q is among the needs", not)
				}
			}
		})
	}
}

// refusing answers reviews: everything is allowed but what the function refuses.
func refusing(refuse func(*authorizationv1.ResourceAttributes) bool) *fake.Clientset {
	client := fake.NewClientset()
	client.PrependReactor("create", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		switch review := action.(clienttesting.CreateAction).GetObject().(type) {
		case *authorizationv1.SelfSubjectAccessReview:
			review.Status.Allowed = !refuse(review.Spec.ResourceAttributes)
			return true, review, nil
		case *authorizationv1.SubjectAccessReview:
			review.Status.Allowed = review.Spec.User == "system:serviceaccount:ns:sa" && !refuse(review.Spec.ResourceAttributes)
			return true, review, nil
		}
		return false, nil, nil
	})
	return client
}

func TestWhatIsMissingIsNamedOnceWithAllThatNeedsIt(t *testing.T) {
	t.Parallel()
	client := refusing(func(a *authorizationv1.ResourceAttributes) bool {
		return a.Resource == "statefulsets" && a.Verb == "watch"
	})
	missing, err := Check(context.Background(), client, For(profileWith(coscheduling, spread, ipReservation)),
		ServiceAccount("ns", "sa"))
	require.NoError(t, err)
	want := []Need{{
		Group: "apps", Resource: "statefulsets", Verb: "watch", Weight: Vital,
		For: []string{spread, ipReservation, coscheduling},
		Lost: noSpread + "; " + noScheduling + "; gangs made of a StatefulSet " +
			"(berth.dev/gang, gangOwners) do not start",
	}}
	assert.Equal(t, "missing", want, missing)
}

func TestASubresourceIsAskedForAsOne(t *testing.T) {
	t.Parallel()
	client := refusing(func(a *authorizationv1.ResourceAttributes) bool {
		return a.Resource == "pods" && a.Subresource == "binding"
	})
	missing, err := Check(context.Background(), client, For(profileWith()), nil)
	require.NoError(t, err)
	if len(missing) != 1 || missing[0].Right() != "create pods/binding" || missing[0].Weight != Vital {
		t.Errorf("missing %v, want create pods/binding", missing)
	}
}

func TestAnAPIServerThatFailsIsAnErrorAndNotAMissingRight(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset()
	down := errors.New("the server is down")
	client.PrependReactor("create", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil,
			down
	})
	if _, err := Check(context.Background(), client, For(profileWith()), nil); !errors.Is(err, down) {
		t.Errorf("error %v, want %v", err, down)
	}
}

// everything is a configuration with each plugin and feature of the table.
func everything() []Need {
	var names []string
	for _, need := range needs() {
		names = append(names, need.For...)
	}
	config := profileWith(names...)
	config.LeaderElection = componentconfig.LeaderElectionConfiguration{LeaderElect: true, ResourceNamespace: "ns",
		ResourceName: "mine"}
	return For(config, NativeGroups)
}

func TestEachVitalRightThatIsMissingIsNamedWithWhatNeedsIt(t *testing.T) {
	t.Parallel()
	vital := 0
	for _, need := range everything() {
		if need.Weight != Vital {
			continue
		}
		vital++
		want := need.Right() + " ("
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			client := refusing(func(a *authorizationv1.ResourceAttributes) bool {
				resource, sub, _ := strings.Cut(need.Resource, "/")
				return a.Group == need.Group && a.Resource == resource && a.Subresource == sub && a.Verb == need.Verb
			})
			err := Demand(t.Context(), client, everything())
			if err == nil {
				t.Fatal("the right is missing, and nothing is said")
			}
			assert.Contains(t, err.Error(), append(need.For, want, noScheduling)...)
		})
	}
	if vital < 50 {
		t.Errorf("%d rights are vital, want 50 or more", vital)
	}
}

func TestAllMissingRightsAreOneError(t *testing.T) {
	t.Parallel()
	client := refusing(func(a *authorizationv1.ResourceAttributes) bool {
		return a.Resource == "nodes" && a.Verb != "patch" || a.Resource == "podgroups" && a.Verb == "watch"
	})
	err := Demand(t.Context(), client, For(profileWith(coscheduling)))
	assert.Contains(t, fmt.Sprint(err), "get,list,watch nodes (kube-scheduler): nothing is scheduled",
		"watch podgroups.scheduling.x-k8s.io (Coscheduling)")
}

func TestASchedulerRunsWithoutARightThatIsNotVital(t *testing.T) {
	t.Parallel()
	groups := map[string]bool{}
	for _, need := range everything() {
		if need.Weight == Vital || groups[need.Group] {
			continue
		}
		groups[need.Group] = true
		client := refusing(func(a *authorizationv1.ResourceAttributes) bool {
			return !slices.ContainsFunc(everything(), func(n Need) bool {
				resource, sub, _ := strings.Cut(n.Resource, "/")
				return n.Weight == Vital && n.Group == a.Group && resource == a.Resource && sub == a.Subresource &&
					n.Verb == a.Verb
			}) && a.Group == need.Group
		})
		if err := Demand(t.Context(), client, everything()); err != nil {
			t.Errorf("without %s: %v", need, err)
		}
	}
}

// An API server that starts beside the scheduler answers later.
func TestTheRightsAreAskedForUntilTheAPIServerAnswers(t *testing.T) {
	t.Parallel()
	client := refusing(func(a *authorizationv1.ResourceAttributes) bool { return a.Resource == "nodes" })
	var asked atomic.Int32
	client.PrependReactor("create", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		return asked.Add(1) == 1, nil, errors.New("the server is down")
	})
	if err := Demand(t.Context(), client, For(profileWith())); err == nil || !strings.Contains(err.Error(), "nodes") {
		t.Errorf("error %v, want one that names nodes", err)
	}
}
