package inputs

import (
	"reflect"
	"strings"
)

// fieldsOf are the fields that a scheduler reads, beside the metadata, by the name of the resource: the status of a
// PodGroup only as far as capacity is reserved for it, and no parameters of drivers. Fields in brackets are those that
// are kept of the field before them; without brackets the whole field is kept.
var fieldsOf = map[string]string{
	"namespaces": "status(phase)",
	"nodes": `spec(unschedulable taints podPreemptionPolicy) status(capacity allocatable images runtimeHandlers features
		declaredFeatures nodeInfo(kubeletVersion operatingSystem architecture)
		conditions(type status reason lastHeartbeatTime))`,
	"pods": `spec(nodeName schedulerName nodeSelector affinity tolerations topologySpreadConstraints priority
		priorityClassName preemptionPolicy schedulingGates schedulingGroup overhead resources resourceClaims
		runtimeClassName os hostNetwork restartPolicy terminationGracePeriodSeconds activeDeadlineSeconds
		containers(name image resources resizePolicy restartPolicy ports(hostPort hostIP containerPort protocol))
		initContainers(name image resources resizePolicy restartPolicy ports(hostPort hostIP containerPort protocol))
		volumes(name persistentVolumeClaim
			ephemeral(volumeClaimTemplate(spec(accessModes selector resources volumeName storageClassName volumeMode)))
			csi(driver readOnly) gcePersistentDisk awsElasticBlockStore azureDisk
			iscsi(targetPortal iqn lun readOnly) rbd(monitors image pool readOnly)))
		status(phase startTime nominatedNodeName resourceClaimStatuses extendedResourceClaimStatus allocatedResources
			resources nodeAllocatableResourceClaimStatuses conditions(type status reason lastTransitionTime message)
			containerStatuses(name allocatedResources resources) initContainerStatuses(name allocatedResources resources))`,
	"services":               "spec(selector)",
	"replicationcontrollers": "spec(selector replicas)",
	"replicasets.apps":       "spec(selector replicas)",
	"statefulsets.apps":      "spec(selector replicas podManagementPolicy)",
	"poddisruptionbudgets.policy": `spec status(observedGeneration disruptedPods disruptionsAllowed currentHealthy
		desiredHealthy expectedPods)`,
	"priorityclasses.scheduling.k8s.io":    "value globalDefault preemptionPolicy",
	"podgroups.scheduling.k8s.io":          "spec",
	"compositepodgroups.scheduling.k8s.io": "spec",
	"podgroups.scheduling.x-k8s.io":        "spec status(reservedNodes conditions)",
	"placementpolicies.berth.dev":          "spec",
	"ippools.berth.dev":                    "spec",
	"ipreservations.berth.dev":             "spec",
	"persistentvolumes": `spec(capacity accessModes claimRef persistentVolumeReclaimPolicy storageClassName volumeMode
		nodeAffinity csi(driver volumeHandle readOnly) gcePersistentDisk awsElasticBlockStore azureDisk) status(phase)`,
	"persistentvolumeclaims": `spec(accessModes selector resources volumeName storageClassName volumeMode)
		status(phase accessModes capacity)`,
	"storageclasses.storage.k8s.io":       "provisioner reclaimPolicy volumeBindingMode allowedTopologies",
	"csinodes.storage.k8s.io":             "spec",
	"csidrivers.storage.k8s.io":           "spec(storageCapacity attachRequired)",
	"csistoragecapacities.storage.k8s.io": "nodeTopology storageClassName capacity maximumVolumeSize",
	"volumeattachments.storage.k8s.io": `spec(attacher nodeName source(persistentVolumeName))
		status(attached)`,
	"deviceclasses.resource.k8s.io":    "spec(selectors extendedResourceName)",
	"resourceslices.resource.k8s.io":   "spec",
	"devicetaintrules.resource.k8s.io": "spec",
	"resourceclaims.resource.k8s.io": `spec(devices(requests constraints))
		status(reservedFor allocation(devices(results) nodeSelector allocationTimestamp))`,
}

// metadata are the fields that are kept of the metadata of every object. Of the annotations, only some are kept.
const metadata = `metadata(name namespace uid generation labels creationTimestamp deletionTimestamp ownerReferences
	annotations) `

// mask has the fields to keep of an object by their names in JSON, each with the fields to keep of it; nil for all.
type mask map[string]mask

// masks are the masks of fieldsOf.
var masks = func() map[string]mask {
	masks := map[string]mask{}
	for resource, fields := range fieldsOf {
		masks[resource] = maskOf(metadata + fields)
	}
	return masks
}()

func maskOf(text string) mask {
	open, last := []mask{{}}, ""
	for _, word := range strings.Fields(strings.NewReplacer("(", " ( ", ")", " ) ").Replace(text)) {
		of := open[len(open)-1]
		switch word {
		case "(":
			of[last] = mask{}
			open = append(open, of[last])
		case ")":
			open = open[:len(open)-1]
		default:
			of[word], last = nil, word
		}
	}
	return open[0]
}

// copy copies the fields of the mask from one value to another of the same type, which is empty.
func (m mask) copy(to, from reflect.Value) {
	switch {
	case m == nil:
		to.Set(from)
	case from.Kind() == reflect.Pointer && !from.IsNil():
		to.Set(reflect.New(from.Type().Elem()))
		m.copy(to.Elem(), from.Elem())
	case from.Kind() == reflect.Slice && from.Len() > 0:
		to.Set(reflect.MakeSlice(from.Type(), from.Len(), from.Len()))
		for i := range from.Len() {
			m.copy(to.Index(i), from.Index(i))
		}
	case from.Kind() == reflect.Struct:
		for i := range from.NumField() {
			name, _, _ := strings.Cut(from.Type().Field(i).Tag.Get("json"), ",")
			of, isKept := m[name]
			if name == "" { // its fields are those of the object around it
				of, isKept = m, true
			}
			if isKept {
				of.copy(to.Field(i), from.Field(i))
			}
		}
	}
}
