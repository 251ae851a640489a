package account

import (
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"

	"berth.dev/berth/pkg/podview"
)

// StorageListers read what tells how much storage drivers can still provision.
type StorageListers struct {
	claims     corelisters.PersistentVolumeClaimLister
	classes    storagelisters.StorageClassLister
	drivers    storagelisters.CSIDriverLister
	capacities storagelisters.CSIStorageCapacityLister
}

// NewStorageListers asks the factory for the informers.
func NewStorageListers(factory informers.SharedInformerFactory) StorageListers {
	s := factory.Storage().V1()
	return StorageListers{claims: factory.Core().V1().PersistentVolumeClaims().Lister(),
		classes: s.StorageClasses().Lister(),
		drivers: s.CSIDrivers().Lister(), capacities: s.CSIStorageCapacities().Lister()}
}

// Storage counts for one dry run what members take of the capacities that CSI drivers publish. The scheduler's
// own filter compares each volume with what is published, which does not shrink before a driver has provisioned: of
// several members each would fit where all do not.
type Storage struct {
	StorageListers
	taken map[apitypes.UID]int64
}

// NewStorage returns the account of one dry run.
func NewStorage(listers StorageListers) *Storage {
	return &Storage{StorageListers: listers, taken: map[apitypes.UID]int64{}}
}

// Volume is a volume that a driver would have to provision.
type Volume struct {
	class string
	bytes int64
}

// Provisions returns the volumes of the pod that drivers with published capacities would have to provision.
func (s *StorageListers) Provisions(pod *v1.Pod) []Volume {
	var out []Volume
	for _, name := range podview.VolumeClaims(pod) {
		claim, err := s.claims.PersistentVolumeClaims(pod.Namespace).Get(name)
		if err != nil || claim.Spec.VolumeName != "" || claim.Spec.StorageClassName == nil {
			continue
		}
		class, err := s.classes.Get(*claim.Spec.StorageClassName)
		if err != nil {
			continue
		}
		driver, err := s.drivers.Get(class.Provisioner)
		if err != nil || driver.Spec.StorageCapacity == nil || !*driver.Spec.StorageCapacity {
			continue
		}
		out = append(out, Volume{class: class.Name, bytes: claim.Spec.Resources.Requests.Storage().Value()})
	}
	return out
}

// Bound reports whether all claims of the pod for volumes have theirs, so that the scheduler has nothing to choose or
// to write.
func (s *StorageListers) Bound(pod *v1.Pod) bool {
	return podview.VolumesBound(pod, s.claims.PersistentVolumeClaims(pod.Namespace).Get)
}

// Fits reports whether the volumes fit on the node beside those of the members placed before.
func (a *Storage) Fits(volumes []Volume, node *v1.Node) bool {
	return len(volumes) == 0 || a.assign(volumes, node, map[apitypes.UID]int64{})
}

// Take counts the volumes on the node.
func (a *Storage) Take(volumes []Volume, node *v1.Node) {
	if len(volumes) == 0 {
		return
	}
	taken := map[apitypes.UID]int64{}
	a.assign(volumes, node, taken)
	for uid, bytes := range taken {
		a.taken[uid] += bytes
	}
}

// assign finds a capacity for each volume and adds it to taken, and reports whether all have one.
func (a *Storage) assign(volumes []Volume, node *v1.Node, taken map[apitypes.UID]int64) bool {
	all, err := a.capacities.List(labels.Everything())
	if err != nil {
		return true
	}
	for _, v := range volumes {
		found := false
		for _, c := range all {
			if c.StorageClassName != v.class || !reaches(c, node) || c.Capacity == nil ||
				c.Capacity.Value()-a.taken[c.UID]-taken[c.UID] < v.bytes {
				continue
			}
			taken[c.UID] += v.bytes
			found = true
			break
		}
		if !found {
			return false
		}
	}
	return true
}

// reaches reports whether volumes of the capacity can be used on the node.
func reaches(c *storagev1.CSIStorageCapacity, node *v1.Node) bool {
	if c.NodeTopology == nil {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(c.NodeTopology)
	return err == nil && selector.Matches(labels.Set(node.Labels))
}
