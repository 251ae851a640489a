package dump

import (
	"encoding/json"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"berth.dev/berth/pkg/cluster/inputs"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/require"
)

func keptOf(t *testing.T, text string) runtime.Object {
	t.Helper()
	obj := &unstructured.Unstructured{}
	require.NoError(t, obj.UnmarshalJSON([]byte(text)))
	kept, err := inputs.Keep(obj)
	require.NoError(t, err)
	return kept
}

func asJSON(t *testing.T, obj any) string {
	t.Helper()
	data, err := json.Marshal(obj)
	require.NoError(t, err)
	return string(data)
}

// secretive holds the word hush in what must not be kept, and open in what a scheduler reads.
const secretive = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"open","namespace":"open","managedFields":[{"manager":"hush"}],
"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"hush","berth.dev/spot":"open"},"labels":{"l":"open"}},
"spec":{"nodeName":"open","serviceAccountName":"hush","imagePullSecrets":[{"name":"hush"}],"hostAliases":[{"ip":"hush"}],"schedulerName":"open",
"containers":[{"name":"open","image":"open","command":["hush"],"args":["hush"],"env":[{"name":"hush","value":"hush"}],"envFrom":[{"secretRef":{"name":"hush"}}],
"volumeMounts":[{"name":"v","mountPath":"hush"}],"livenessProbe":{"exec":{"command":["hush"]}},"resources":{"requests":{"cpu":"1"}},"ports":[{"containerPort":1,"name":"hush"},{"containerPort":2,"hostPort":3}]}],
"initContainers":[{"name":"open","command":["hush"]}],"ephemeralContainers":[{"name":"hush","command":["hush"]}],
"volumes":[{"name":"open","secret":{"secretName":"hush"}},{"name":"open","configMap":{"name":"hush"}},{"name":"open","projected":{"sources":[{"secret":{"name":"hush"}}]}},
{"name":"open","persistentVolumeClaim":{"claimName":"open"}},{"name":"open","csi":{"driver":"open","volumeAttributes":{"a":"hush"},"nodePublishSecretRef":{"name":"hush"}}},
{"name":"open","rbd":{"monitors":["open"],"image":"open","secretRef":{"name":"hush"},"keyring":"hush"}}]},
"status":{"phase":"Running","podIP":"hush","message":"hush","conditions":[{"type":"Ready","status":"True","message":"hush"}],
"containerStatuses":[{"name":"open","image":"hush","imageID":"hush","ready":true,"restartCount":0,"resources":{"requests":{"cpu":"1"}}}]}}`

func TestADumpKeepsNoSecrets(t *testing.T) {
	t.Parallel()
	pod := keptOf(t, secretive).(*v1.Pod)
	if text := asJSON(t, pod); strings.Contains(text, "hush") {
		t.Errorf("kept what it should not have: %s", text)
	}
	assert.Equal(t, "annotations", map[string]string{wellknown.SpotKey: "open"}, pod.Annotations)
	if got := len(pod.Spec.Volumes); got != 3 || pod.Spec.Containers[0].Ports[0].HostPort != 3 ||
		pod.Spec.NodeName != "open" {
		t.Errorf("lost what decides about placement: %s", asJSON(t, pod))
	}
	for _, other := range []string{
		`{"apiVersion":"v1","kind":"Node","metadata":{"name":"n","annotations":{"x":"hush"}},"spec":{"providerID":"hush"},"status":{"addresses":[{"address":"hush","type":"InternalIP"}],"nodeInfo":{"machineID":"hush"}}}`,
		`{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"p"},"spec":{"csi":{"driver":"d","volumeHandle":"h","nodeStageSecretRef":{"name":"hush"},"volumeAttributes":{"a":"hush"}},"mountOptions":["hush"]}}`,
		`{"apiVersion":"storage.k8s.io/v1","kind":"StorageClass","metadata":{"name":"s"},"provisioner":"p","parameters":{"secretName":"hush"}}`,
		`{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"r"},"spec":{"selector":{},"template":{"spec":{"containers":[{"name":"c","env":[{"name":"hush"}]}]}}}}`,
		`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j","annotations":{"x":"hush"}},"spec":{"parallelism":2,"template":{"metadata":{"annotations":{"x":"hush"}},"spec":{"containers":[{"name":"c","env":[{"name":"hush"}]}]}}}}`,
		`{"apiVersion":"ray.io/v1","kind":"RayCluster","metadata":{"name":"r"},"spec":{"workerGroupSpecs":[{"replicas":2,"groupName":"open","template":{"spec":{"containers":[{"name":"hush"}]}}}]}}`,
		`{"apiVersion":"v1","kind":"Service","metadata":{"name":"s"},"spec":{"externalName":"hush","selector":{"a":"b"}}}`,
		`{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":"c"},"spec":{"devices":{"config":[{"opaque":{"driver":"d","parameters":{"a":"hush"}}}]}}}`,
		`{"apiVersion":"berth.dev/v1alpha1","kind":"PlacementPolicy","metadata":{"name":"p","annotations":{"x":"hush"}},"spec":{"licenses":[{"name":"m","count":1,"x":"hush"}]},"status":{"conditions":[{"message":"hush"}]}}`,
		`{"apiVersion":"berth.dev/v1alpha1","kind":"IPPool","metadata":{"name":"p","annotations":{"x":"hush"}},"spec":{"subnets":[{"ranges":["10.0.0.1"],"x":"hush"}]}}`,
		`{"apiVersion":"berth.dev/v1alpha1","kind":"IPReservation","metadata":{"name":"ip-10-0-0-1","annotations":{"x":"hush"}},"spec":{"address":"10.0.0.1","pod":{"namespace":"n","name":"p"},"x":"hush"},"status":{"x":"hush"}}`,
		`{"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"PodGroup","metadata":{"name":"g","annotations":{"x":"hush"}},"spec":{"minMember":2,"x":"hush"}}`,
	} {
		if text := asJSON(t, keptOf(t, other)); strings.Contains(text, "hush") {
			t.Errorf("kept what it should not have: %s", text)
		}
	}
	secret := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret"}}
	if _, err := inputs.Keep(secret); err == nil || !strings.Contains(err.Error(), "Secret") {
		t.Errorf("got error %v, want one that names the kind", err)
	}
}

func TestEveryKindOfADumpCanBeKept(t *testing.T) {
	t.Parallel()
	for _, kind := range inputs.Kinds() {
		obj := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "n", "namespace": "a"}}}
		obj.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind))
		kept, err := inputs.Keep(obj)
		if err != nil {
			t.Errorf("%s: %v", kind.Kind, err)
			continue
		}
		hashed, err := NewNameHasher([]byte("k"), usualKeys()).Hash(kept)
		if err != nil {
			t.Errorf("hashing %s: %v", kind.Kind, err)
			continue
		}
		if text := asJSON(t, hashed); kind.Kind != "CSIDriver" && strings.Contains(text, `"n"`) {
			t.Errorf("%s keeps its name: %s", kind.Kind, text)
		}
	}
}

func TestAHashedPolicyStillMeansItsPodsAndNodes(t *testing.T) {
	t.Parallel()
	h := NewNameHasher([]byte("key"), usualKeys())
	hash := func(text string) string {
		out, err := h.Hash(keptOf(t, text))
		require.NoError(t, err)
		return asJSON(t, out)
	}
	policy := hash(`{"apiVersion":"berth.dev/v1alpha1","kind":"PlacementPolicy","metadata":{"name":"acme"},"spec":{"licenses":[
{"name":"acme","license":"acme-cad","count":1,"pods":{"selector":{"matchLabels":{"team":"acme"}}}},
{"name":"acme-2","count":1,"pods":{"expression":"pod.labels.team == 'acme'"}}],
"datasets":[{"name":"d","dataset":"acme-data","nodes":{"expression":"node.name == 'acme'"}}],
"compliance":{"pods":{"namespaceSelector":{"matchExpressions":[{"key":"team","operator":"In","values":["acme"]}]}},"rules":[{"name":"acme","nodes":{}}]}}}`)
	pod := hash(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"default","labels":{"team":"acme"},"annotations":{"berth.dev/licenses":"acme-cad=2, acme","berth.dev/datasets":"acme-data"}},"spec":{"containers":[{"name":"c"}]}}`)
	if text := policy + pod; strings.Contains(text, "acme") {
		t.Errorf("a name is left: %s", text)
	}
	cad, team := h.name("acme-cad"), h.name("acme")
	assert.Contains(t, policy,
		`"license":"`+cad+`"`, `"team":"`+team+`"`, `"values":["`+team+`"]`, `"datasets":[]`)
	if want := cad + "=2, " + team; !strings.Contains(pod, want) {
		t.Errorf("%s is not in %s", want, pod)
	}
}

func TestHashedNamesStillReferToEachOther(t *testing.T) {
	t.Parallel()
	h := NewNameHasher([]byte("key"), usualKeys())
	hash := func(text string) runtime.Object {
		out, err := h.Hash(keptOf(t, text))
		require.NoError(t, err)
		return out
	}
	const gpuUUID, sliceUUID, fabric = "GPU-5d5ba0d0-1c2d-4e5f-8a9b-9e3d8d2b8a70",
		"MIG-C6D4F1EF-42e4-5de3-91c7-45d71c87eb3f", "b78b4d3c-42e4-4a3b-9b0e-45d71c87eb3f"
	node := hash(`{"apiVersion":"v1","kind":"Node","metadata":{"name":"acme-1","annotations":{
"hami.io/node-nvidia-register":"` + gpuUUID + `,10,46068,100,NVIDIA-L4,0,true:"},
"labels":{"kubernetes.io/hostname":"acme-1","nvidia.com/gpu.clique":"` + fabric + `.7","team":"acme","topology.kubernetes.io/zone":"z1","nvidia.com/gpu.product":"NVIDIA-L4","level":"3"}},
"spec":{"taints":[{"key":"team","value":"acme","effect":"NoSchedule"}]},"status":{"capacity":{"deviceclass.resource.kubernetes.io/acme-class":"2"},"images":[{"names":["acme/app:latest"],"sizeBytes":1}]}}`).(*v1.Node)
	pod := hash(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"acme","uid":"0e3d8d2b-1c2d-4e5f-8a9b-9e3d8d2b8a70","annotations":{
"berth.dev/gpu-assigned":"{\"pod\":\"0e3d8d2b-1c2d-4e5f-8a9b-9e3d8d2b8a70\",\"node\":\"acme-1\",\"devices\":[0],\"uuids\":[\"` + gpuUUID + `\"],\"milli\":500}",
"hami.io/vgpu-devices-allocated":"` + gpuUUID + `,NVIDIA,4096,0:;"}},"spec":{"nodeName":"acme-1","schedulerName":"berth-scheduler","nodeSelector":{"team":"acme"},
"tolerations":[{"key":"team","value":"acme"}],"priorityClassName":"system-node-critical","schedulingGates":[{"name":"gate"}],
"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchFields":[{"key":"metadata.name","operator":"In","values":["acme-1"]}],"matchExpressions":[{"key":"team","operator":"In","values":["acme"]}]}]}},
"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"topology.kubernetes.io/zone","namespaces":["acme"],"labelSelector":{"matchLabels":{"team":"acme"}}}]}},
"containers":[{"name":"c","image":"acme/app","ports":[{"hostPort":80,"hostIP":"192.0.2.44","containerPort":80}],
"resources":{"requests":{"deviceclass.resource.kubernetes.io/acme-class":"2","cpu":"1"},"limits":{"deviceclass.resource.kubernetes.io/acme-class":"2"}}}]},
"status":{"extendedResourceClaimStatus":{"resourceClaimName":"c","requestMappings":[{"containerName":"c","resourceName":"deviceclass.resource.kubernetes.io/acme-class","requestName":"r"}]},"conditions":[{"type":"PodScheduled","status":"False","message":"acme"},{"type":"berth.dev/GPUsAssigned","status":"True",
"message":"{\"pod\":\"0e3d8d2b-1c2d-4e5f-8a9b-9e3d8d2b8a70\",\"node\":\"acme-1\",\"devices\":[0],\"uuids\":[\"` + gpuUUID + `\"],\"milli\":500}"}]}}`).(*v1.Pod)
	class := hash(`{"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass","metadata":{"name":"acme-class"},
"spec":{"selectors":[{"cel":{"expression":"device.attributes['gpu.nvidia.com'].uuid == '` + gpuUUID + `'"}}]}}`).(*resourcev1.DeviceClass)
	devices := hash(`{"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{"name":"s"},"spec":{"driver":"gpu.nvidia.com","nodeName":"acme-1",
"pool":{"name":"acme-1","generation":1,"resourceSliceCount":1},"devices":[{"name":"gpu-0","attributes":{"uuid":{"string":"` + gpuUUID + `"},"productName":{"string":"NVIDIA L4"}}},
{"name":"gpu-0-mig","attributes":{"gpu.nvidia.com/uuid":{"string":"` + sliceUUID + `"},"parentUUID":{"string":"` + gpuUUID + `"}}},
{"name":"xe-0","attributes":{"uuid":{"string":"acme-02-0-0x56c0"}}}]}}`).(*resourcev1.ResourceSlice)
	all := asJSON(t, node) + asJSON(t, pod) + asJSON(t, class) + asJSON(t, devices)
	for _, secret := range []string{"acme", gpuUUID[4:], sliceUUID[4:], fabric, "0e3d8d2b", "192.0.2.44"} {
		if strings.Contains(all, secret) {
			t.Errorf("%s is left: %s", secret, all)
		}
	}
	resource := v1.ResourceName("deviceclass.resource.kubernetes.io/" + class.Name)
	requests := pod.Spec.Containers[0].Resources
	attribute := func(device int, name resourcev1.QualifiedName) string {
		if value := devices.Spec.Devices[device].Attributes[name].StringValue; value != nil {
			return *value
		}
		return ""
	}
	uuid := attribute(0, "uuid")
	register, _, _ := strings.Cut(node.Annotations["hami.io/node-nvidia-register"], ",")
	allocated, _, _ := strings.Cut(pod.Annotations["hami.io/vgpu-devices-allocated"], ",")
	grant, ok := gpuview.Granted(pod)
	if !ok || len(grant.UUIDs) != 1 {
		t.Fatalf("the grant no longer belongs to the pod on its node: %s", asJSON(t, pod))
	}
	if !strings.HasPrefix(uuid, "GPU-") || len(uuid) != len(gpuUUID) {
		t.Errorf("%s does not look like a GPU's UUID", uuid)
	}
	for what, held := range map[string]bool{
		"requests":              requests.Requests[resource] == requests.Limits[resource] && len(requests.Requests) == 2,
		"requests of the class": !requests.Requests.Name(resource, "").IsZero(),
		"capacity of the class": !node.Status.Capacity.Name(resource, "").IsZero(),
		"claim for a resource":  pod.Status.ExtendedResourceClaimStatus.RequestMappings[0].ResourceName == string(resource),
		"selector":              strings.Contains(class.Spec.Selectors[0].CEL.Expression, uuid),
		"host port":             pod.Spec.Containers[0].Ports[0].HostPort == 80,
		"clique":                strings.HasSuffix(node.Labels["nvidia.com/gpu.clique"], ".7"),
		"slice of a GPU":        strings.HasPrefix(attribute(1, "gpu.nvidia.com/uuid"), "MIG-"),
	} {
		if !held {
			t.Errorf("%s: not as it was: %s", what, all)
		}
	}
	term := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0]
	affinity := pod.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0]
	team := node.Labels["team"]
	for what, pair := range map[string][2]string{
		"node of the pod": {node.Name, pod.Spec.NodeName}, "host name": {node.Name, node.Labels["kubernetes.io/hostname"]},
		"matched field": {node.Name, term.MatchFields[0].Values[0]},
		"taint":         {team, node.Spec.Taints[0].Value}, "toleration": {team, pod.Spec.Tolerations[0].Value},
		"node selector":    {team, pod.Spec.NodeSelector["team"]},
		"matched label":    {team, term.MatchExpressions[0].Values[0]},
		"pod affinity":     {team, affinity.LabelSelector.MatchLabels["team"]},
		"namespace":        {pod.Namespace, affinity.Namespaces[0]},
		"register of HAMi": {uuid, register}, "devices of HAMi": {uuid, allocated}, "granted device": {uuid, grant.UUIDs[0]},
		"GPU of a slice": {uuid, attribute(1, "parentUUID")},
		"pool":           {node.Name, devices.Spec.Pool.Name},
		"zone":           {"z1", node.Labels["topology.kubernetes.io/zone"]},
		"product":        {"NVIDIA-L4", node.Labels["nvidia.com/gpu.product"]}, "number": {"3", node.Labels["level"]},
		"profile": {"berth-scheduler", pod.Spec.SchedulerName}, "priority class": {"system-node-critical",
			pod.Spec.PriorityClassName}, "gate": {"gate", pod.Spec.SchedulingGates[0].Name},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: %q and %q differ", what, pair[0], pair[1])
		}
	}
	again, err := NewNameHasher([]byte("another"), usualKeys()).Hash(keptOf(t, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"acme-1"}}`))
	require.NoError(t, err)
	if again.(*v1.Node).Name == node.Name {
		t.Error("another key gives the same hash")
	}
}

// Small numbers stay, since affinities compare them, and so do models of GPUs.
func TestAHashedDumpHidesNumbersThatAreNames(t *testing.T) {
	t.Parallel()
	h := NewNameHasher([]byte("key"), usualKeys())
	kept := []runtime.Object{
		keptOf(t, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n","labels":{"account":"4711","rank":"7","nvidia.com/gpu.product":"Prototype-X","team":"acme"}},
"spec":{"taints":[{"key":"level","value":"12","effect":"NoSchedule"}]},"status":{"allocatable":{"nvidia.com/gpu":"1"}}}`),
		keptOf(t, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","labels":{"account":"4711","apps.kubernetes.io/pod-index":"3"},"annotations":{
"berth.dev/gpu-models":"Prototype-X| Tesla-T4","berth.dev/start-window":"acme-night","gpu-fraction":"0.5"}},
"spec":{"nodeSelector":{"account":"4711"},"tolerations":[{"key":"level","operator":"Lt","value":"20"}],"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[
{"key":"rank","operator":"Gt","values":["5"]}]}]}}},"containers":[{"name":"c"}]}}`),
	}
	var all string
	for i, obj := range kept {
		hashed, err := h.Hash(obj)
		require.NoError(t, err)
		kept[i] = hashed
		all += asJSON(t, hashed)
	}
	for _, secret := range []string{"4711", "cme", "night"} {
		if strings.Contains(all, secret) {
			t.Errorf("%s is left: %s", secret, all)
		}
	}
	node, pod := kept[0].(*v1.Node), kept[1].(*v1.Pod)
	if node.Labels["account"] != pod.Spec.NodeSelector["account"] {
		t.Errorf("the pod no longer fits its node: %s", all)
	}
	assert.Contains(t, all,
		`"rank":"7"`, `"values":["5"]`, `"value":"12"`, `"value":"20"`, `"apps.kubernetes.io/pod-index":"3"`,
		`"gpu-fraction":"0.5"`, `"berth.dev/gpu-models":"Prototype-X| Tesla-T4"`)
}

func usualKeys() *gpuview.Keys {
	keys := gpuview.DefaultKeys()
	return &keys
}
