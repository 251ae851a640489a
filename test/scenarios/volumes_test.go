package scenarios_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// selectedNode is the annotation by which the scheduler asks for a volume on a node.
const selectedNode = "volume.kubernetes.io/selected-node"

func quantity(s string) (resource.Quantity, error) { return resource.ParseQuantity(s) }

// doDisks creates volumes that exist before any pod asks for them, a number on every node of a prefix.
func (w *world) doDisks(ctx context.Context, l *line) error {
	n, err := l.int(1)
	if err != nil {
		return err
	}
	size, err := quantity(l.option("size", "10Gi"))
	if err != nil {
		return err
	}
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: w.name + "-disk"},
		Provisioner:       "kubernetes.io/no-provisioner",
		VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)}
	if err := w.storageClass(ctx, class); err != nil {
		return err
	}
	nodes, err := w.nodesOf(ctx, l.arg(0))
	if err != nil {
		return err
	}
	for _, node := range nodes {
		for range n {
			w.mu.Lock()
			w.disks++
			name := fmt.Sprintf("%s-disk-%d", w.name, w.disks)
			w.mu.Unlock()
			if _, err := w.client.CoreV1().PersistentVolumes().Create(ctx, w.volumeOn(node, name, class.Name, size),
				metav1.CreateOptions{}); err != nil {
				return err
			}
		}
	}
	// A volume that its controller has not seen yet is not available.
	return w.eventually(ctx, waitForControllers, func() error {
		list, err := w.client.CoreV1().PersistentVolumes().List(ctx, listScenario(w.name))
		if err != nil {
			return err
		}
		for i := range list.Items {
			if pv := &list.Items[i]; pv.Status.Phase != v1.VolumeAvailable && pv.Status.Phase != v1.VolumeBound {
				return fmt.Errorf("volume %s is %s", pv.Name, pv.Status.Phase)
			}
		}
		return nil
	})
}

func (w *world) storageClass(ctx context.Context, class *storagev1.StorageClass) error {
	if _, err := w.client.StorageV1().StorageClasses().Get(ctx, class.Name, metav1.GetOptions{}); err == nil {
		return nil
	}
	_, err := w.client.StorageV1().StorageClasses().Create(ctx, class, metav1.CreateOptions{})
	return err
}

// volumeOn is a volume that only pods on one node can use.
func (w *world) volumeOn(node, name, class string, size resource.Quantity) *v1.PersistentVolume {
	return &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{scenarioLabel: w.name}},
		Spec: v1.PersistentVolumeSpec{
			Capacity: v1.ResourceList{v1.ResourceStorage: size}, StorageClassName: class,
			AccessModes:                   []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce, v1.ReadWriteMany},
			PersistentVolumeReclaimPolicy: v1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource:        v1.PersistentVolumeSource{Local: &v1.LocalVolumeSource{Path: "/" + name}},
			NodeAffinity: &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
				MatchExpressions: []v1.NodeSelectorRequirement{{Key: v1.LabelHostname, Operator: v1.NodeSelectorOpIn,
					Values: []string{node}}}}}}},
		},
	}
}

// doPool gives every node of a prefix room for volumes that are made when a pod needs them, as a CSI driver that tracks
// its capacity does. The scenario plays its provisioner.
func (w *world) doPool(ctx context.Context, l *line) error {
	size, err := quantity(l.arg(1))
	if err != nil {
		return err
	}
	driver := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: w.driver()},
		Spec: storagev1.CSIDriverSpec{AttachRequired: ptr.To(false), StorageCapacity: ptr.To(true)}}
	if _, err := w.client.StorageV1().CSIDrivers().Create(ctx, driver, metav1.CreateOptions{}); err != nil {
		return err
	}
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: w.name + "-pool"}, Provisioner: w.driver(),
		VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)}
	if err := w.storageClass(ctx, class); err != nil {
		return err
	}
	nodes, err := w.nodesOf(ctx, l.arg(0))
	if err != nil {
		return err
	}
	for _, node := range nodes {
		room := &storagev1.CSIStorageCapacity{ObjectMeta: metav1.ObjectMeta{Name: node}, StorageClassName: class.Name,
			Capacity:     &size,
			NodeTopology: &metav1.LabelSelector{MatchLabels: map[string]string{v1.LabelHostname: node}}}
		if _, err := w.client.StorageV1().CSIStorageCapacities(metav1.NamespaceDefault).Create(ctx, room,
			metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	w.background.Go(func() { w.provision(ctx, class.Name) })
	return nil
}

// provision makes the volumes that the scheduler asks for, and sends pods elsewhere for which a node has no room.
func (w *world) provision(ctx context.Context, class string) {
	watching, err := w.client.CoreV1().PersistentVolumeClaims(w.name).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	defer watching.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case event, open := <-watching.ResultChan():
			if !open {
				return
			}
			pvc, ok := event.Object.(*v1.PersistentVolumeClaim)
			if !ok || pvc.Spec.VolumeName != "" || ptr.Deref(pvc.Spec.StorageClassName, "") != class ||
				pvc.Annotations[selectedNode] == "" {
				continue
			}
			if err := w.provisionOne(ctx, pvc); err != nil && ctx.Err() == nil {
				w.t.Logf("provisioning for %s: %v", pvc.Name, err)
			}
		}
	}
}

func (w *world) provisionOne(ctx context.Context, pvc *v1.PersistentVolumeClaim) error {
	node, size := pvc.Annotations[selectedNode], pvc.Spec.Resources.Requests[v1.ResourceStorage]
	pv := w.volumeOn(node, "pvc-"+string(pvc.UID), *pvc.Spec.StorageClassName, size)
	if _, err := w.client.CoreV1().PersistentVolumes().Get(ctx, pv.Name, metav1.GetOptions{}); err == nil {
		return nil
	}
	room, err := w.client.StorageV1().CSIStorageCapacities(metav1.NamespaceDefault).Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if room.Capacity.Cmp(size) < 0 {
		w.t.Logf("%s has no room for the volume of %s", node, pvc.Name)
		_, err := w.client.CoreV1().PersistentVolumeClaims(pvc.Namespace).Patch(ctx, pvc.Name, types.MergePatchType,
			[]byte(`{"metadata":{"annotations":{"`+selectedNode+`":null}}}`), metav1.PatchOptions{})
		return err
	}
	room.Capacity.Sub(size)
	if _, err := w.client.StorageV1().CSIStorageCapacities(metav1.NamespaceDefault).Update(ctx, room,
		metav1.UpdateOptions{}); err != nil {
		return err
	}
	pv.Annotations = map[string]string{"pv.kubernetes.io/provisioned-by": w.driver()}
	pv.Spec.ClaimRef = &v1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: pvc.Namespace,
		Name: pvc.Name, UID: pvc.UID}
	_, err = w.client.CoreV1().PersistentVolumes().Create(ctx, pv, metav1.CreateOptions{})
	return err
}

// doVolume creates a PersistentVolumeClaim that pods share.
func (w *world) doVolume(ctx context.Context, l *line) error {
	namespace, name := w.locate(l.arg(0))
	if err := w.namespace(ctx, namespace); err != nil {
		return err
	}
	return w.createVolume(ctx, namespace, name, l.option("storage", "disk"), l.option("size", "10Gi"),
		l.option("mode", "Many"))
}

func (w *world) createVolume(ctx context.Context, namespace, name, storage, amount, mode string) error {
	size, err := quantity(amount)
	if err != nil {
		return err
	}
	modes := map[string]v1.PersistentVolumeAccessMode{"Many": v1.ReadWriteMany, "Once": v1.ReadWriteOnce}
	pvc := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.PersistentVolumeClaimSpec{
		AccessModes: []v1.PersistentVolumeAccessMode{modes[mode]}, StorageClassName: ptr.To(w.name + "-" + storage),
		Resources: v1.VolumeResourceRequirements{Requests: v1.ResourceList{v1.ResourceStorage: size}}}}
	_, err = w.client.CoreV1().PersistentVolumeClaims(namespace).Create(ctx, pvc, metav1.CreateOptions{})
	return err
}

// mountOwnVolumes gives a pod the volumes that are its own.
func (w *world) mountOwnVolumes(ctx context.Context, pod *v1.Pod, l *line) error {
	for storage, amount := range l.with("volume:") {
		name := pod.Name + "-" + storage
		if err := w.createVolume(ctx, pod.Namespace, name, storage, amount, "Once"); err != nil {
			return err
		}
		mount(&pod.Spec, name)
	}
	return nil
}

// nodesOf returns the names of the scenario's nodes that were created by this prefix, in order.
func (w *world) nodesOf(ctx context.Context, prefix string) ([]string, error) {
	list, err := w.client.CoreV1().Nodes().List(ctx, listScenario(w.name))
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range list.Items {
		if name := list.Items[i].Name; strings.HasPrefix(name, w.name+"-"+prefix+"-") {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no node is called %s-…", prefix)
	}
	slices.Sort(names)
	return names, nil
}
