package priceview

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/pkg/wellknown"
)

func TestDefaultCapacityRules(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		labels map[string]string
		want   CapacityType
	}{
		"a node without labels is on demand": {nil, OnDemand},
		"Karpenter spot":                     {map[string]string{"karpenter.sh/capacity-type": "spot"}, Spot},
		"Karpenter on demand":                {map[string]string{"karpenter.sh/capacity-type": "on-demand"}, OnDemand},
		"Karpenter reserved":                 {map[string]string{"karpenter.sh/capacity-type": "reserved"}, Reserved},
		"EKS spot":                           {map[string]string{"eks.amazonaws.com/capacityType": "SPOT"}, Spot},
		"EKS capacity block": {map[string]string{"eks.amazonaws.com/capacityType": "CAPACITY_BLOCK"},
			Reserved},
		"self-managed AWS": {map[string]string{"node.kubernetes.io/lifecycle": "spot"}, Spot},
		"GKE spot":         {map[string]string{"cloud.google.com/gke-spot": "true"}, Spot},
		"GKE not spot":     {map[string]string{"cloud.google.com/gke-spot": "false"}, OnDemand},
		"GKE preemptible":  {map[string]string{"cloud.google.com/gke-preemptible": "true"}, Spot},
		"GKE provisioning": {map[string]string{"cloud.google.com/gke-provisioning": "preemptible"}, Spot},
		"AKS spot":         {map[string]string{"kubernetes.azure.com/scalesetpriority": "spot"}, Spot},
		"AKS regular": {map[string]string{"kubernetes.azure.com/scalesetpriority": "regular"},
			OnDemand},
		"OKE": {
			map[string]string{"oci.oraclecloud.com/oke-is-preemptible": "true"}, Spot},
		"ACK with a price limit": {
			map[string]string{"node.alibabacloud.com/spot-strategy": "SpotWithPriceLimit"}, Spot},
		"ACK not spot": {map[string]string{"node.alibabacloud.com/spot-strategy": "NoSpot"},
			OnDemand},
		"Spot Ocean":                 {map[string]string{"spotinst.io/node-lifecycle": "spot"}, Spot},
		"Cluster API, the key alone": {map[string]string{"cluster.x-k8s.io/interruptible": ""}, Spot},
		"OpenShift, the key alone": {
			map[string]string{"machine.openshift.io/interruptible-instance": ""}, Spot},
		"the first rule that matches decides": {map[string]string{"karpenter.sh/capacity-type": "on-demand",
			"cloud.google.com/gke-spot": "true"}, OnDemand},
		"a value that no rule knows decides none": {map[string]string{"karpenter.sh/capacity-type": "SPOT",
			"cloud.google.com/gke-spot": "true"}, Spot},
		"an instance type that says spot is only a name": {
			map[string]string{"node.kubernetes.io/instance-type": "spot-large"}, OnDemand},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := DefaultCapacityRules().TypeOf(&v1.Node{ObjectMeta: metav1.ObjectMeta{Labels: tc.labels}})
			if got != tc.want {
				t.Errorf("capacity type is %s, want %s", got, tc.want)
			}
		})
	}
}

func TestSpotPolicyAllows(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		policy                   SpotPolicy
		spot, onDemand, reserved bool
	}{
		{SpotAvoid, false, true, true},
		{SpotTolerate, true, true, true},
		{SpotRequire, true, false, false},
	} {
		got := [3]bool{tc.policy.Allows(Spot), tc.policy.Allows(OnDemand), tc.policy.Allows(Reserved)}
		if want := [3]bool{tc.spot, tc.onDemand, tc.reserved}; got != want {
			t.Errorf("%s allows spot, on-demand, reserved: %v, want %v", tc.policy, got, want)
		}
	}
}

func TestStatedSpotPolicies(t *testing.T) {
	t.Parallel()
	for value, good := range map[string]bool{
		"avoid": true, "tolerate": true, "require": true, "": false, "yes": false, "Tolerate": false, " require": false,
	} {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{wellknown.SpotKey: value}}}
		policy, stated, bad := PodSpotPolicy(pod)
		switch {
		case good && (!stated || bad != nil || string(policy) != value):
			t.Errorf("a pod with %q: got %s, stated %t, %v", value, policy, stated, bad)
		case !good && (stated || bad == nil || bad.Object != "pod" || bad.Value != value):
			t.Errorf("a pod with %q: got %s, stated %t, %v; want a bad value of it", value, policy, stated, bad)
		}
	}
	if _, stated, bad := PodSpotPolicy(&v1.Pod{}); stated || bad != nil {
		t.Errorf("a pod that says nothing: stated %t, %v", stated, bad)
	}
}

// terms are the alternatives of a required node affinity, one requirement each.
func terms(requirements ...v1.NodeSelectorRequirement) v1.PodSpec {
	selector := &v1.NodeSelector{}
	for _, r := range requirements {
		selector.NodeSelectorTerms = append(selector.NodeSelectorTerms,
			v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{r}})
	}
	return v1.PodSpec{Affinity: &v1.Affinity{
		NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: selector}}}
}

func TestAsksForSpot(t *testing.T) {
	t.Parallel()
	const karpenter = "karpenter.sh/capacity-type"
	preferred := v1.PodSpec{Affinity: &v1.Affinity{
		NodeAffinity: &v1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []v1.PreferredSchedulingTerm{
			{Weight: 1, Preference: v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{Key: karpenter,
				Operator: v1.NodeSelectorOpIn, Values: []string{"spot"}}}}},
		}}}}
	for name, tc := range map[string]struct {
		spec v1.PodSpec
		want bool
	}{
		"a plain pod does not": {v1.PodSpec{}, false},
		"required affinity to spot does": {terms(v1.NodeSelectorRequirement{Key: karpenter, Operator: v1.NodeSelectorOpIn,
			Values: []string{"spot"}}), true},
		"affinity to spot among others does": {terms(v1.NodeSelectorRequirement{Key: karpenter, Operator: v1.NodeSelectorOpIn,
			Values: []string{"on-demand", "spot"}}), true},
		"one alternative that is spot does": {terms(v1.NodeSelectorRequirement{Key: "zone", Operator: v1.NodeSelectorOpIn,
			Values: []string{"a"}},
			v1.NodeSelectorRequirement{Key: "eks.amazonaws.com/capacityType", Operator: v1.NodeSelectorOpIn,
				Values: []string{"SPOT"}}), true},
		"affinity to a label that says spot does": {
			terms(v1.NodeSelectorRequirement{Key: "machine.openshift.io/interruptible-instance",
				Operator: v1.NodeSelectorOpExists}), true},
		"affinity to on-demand does not": {terms(v1.NodeSelectorRequirement{Key: karpenter,
			Operator: v1.NodeSelectorOpIn, Values: []string{"on-demand"}}), false},
		"affinity away from spot does not": {terms(v1.NodeSelectorRequirement{Key: karpenter,
			Operator: v1.NodeSelectorOpNotIn, Values: []string{"spot"}}), false},
		"affinity to a label with any value does not": {terms(v1.NodeSelectorRequirement{Key: karpenter,
			Operator: v1.NodeSelectorOpExists}), false},
		"preferred affinity does not": {preferred, false},
		"a node selector for spot does": {
			v1.PodSpec{NodeSelector: map[string]string{"cloud.google.com/gke-spot": "true"}}, true},
		"a node selector for on-demand does not": {
			v1.PodSpec{NodeSelector: map[string]string{"karpenter.sh/capacity-type": "on-demand"}}, false},
		"a toleration of the spot taint does": {
			v1.PodSpec{Tolerations: []v1.Toleration{{Key: "kubernetes.azure.com/scalesetpriority",
				Operator: v1.TolerationOpEqual, Value: "spot"}}}, true},
		"a toleration of any value of it does": {
			v1.PodSpec{Tolerations: []v1.Toleration{{Key: "cloud.google.com/gke-spot", Operator: v1.TolerationOpExists}}}, true},
		"a toleration of everything says nothing": {
			v1.PodSpec{Tolerations: []v1.Toleration{{Operator: v1.TolerationOpExists}}}, false},
		"a toleration of another taint does not": {v1.PodSpec{Tolerations: []v1.Toleration{{Key: "nvidia.com/gpu",
			Operator: v1.TolerationOpExists}}}, false},
		"a toleration of the regular kind does not": {
			v1.PodSpec{Tolerations: []v1.Toleration{{Key: "kubernetes.azure.com/scalesetpriority", Value: "regular"}}}, false},
	} {
		if got := DefaultCapacityRules().AsksForSpot(&v1.Pod{Spec: tc.spec}); got != tc.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

func TestARuleMayMatchAPartOfAValue(t *testing.T) {
	t.Parallel()
	rules := CapacityRules{{Label: v1.LabelInstanceTypeStable, Values: []string{"lp1"},
		Contains: []string{"spot", "low-priority"}, Type: Spot}}
	for value, want := range map[string]CapacityType{"gpu-SPOT-8x": Spot, "lp1": Spot, "d4-low-priority": Spot,
		"lp12": OnDemand, "gpu-8x": OnDemand} {
		if got := rules.TypeOf(&v1.Node{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1.LabelInstanceTypeStable: value}}}); got != want {
			t.Errorf("instance type %s is %s, want %s", value, got, want)
		}
	}
	if rules.AsksForSpot(&v1.Pod{Spec: terms(v1.NodeSelectorRequirement{Key: v1.LabelInstanceTypeStable,
		Operator: v1.NodeSelectorOpExists})}) {
		t.Error("a pod that asks for any instance type asks for spot")
	}
}
