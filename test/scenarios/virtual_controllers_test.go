package scenarios_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/job"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	"k8s.io/kubernetes/pkg/controller/resourceclaim"
	"k8s.io/kubernetes/pkg/controller/statefulset"
	"k8s.io/kubernetes/pkg/controller/volume/persistentvolume"
)

const (
	// workersOfControllers is how many objects a controller works on at a time.
	workersOfControllers = 2
	// volumesEvery is how often the controller of volumes looks at all of them, as by default in kube-controller-manager.
	volumesEvery = 15 * time.Second
)

// runnable is a controller of kube-controller-manager.
type runnable func(ctx context.Context)

// startControllers starts those controllers of kube-controller-manager that the script needs, and returns what waits
// for their end after ctx has ended.
func (c *virtual) startControllers(ctx context.Context, s script) (wait func(), err error) {
	client, err := kubernetes.NewForConfig(c.world.API.RESTConfig())
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	ctx = klog.NewContext(ctx, klog.Logger{})
	factory := informers.NewSharedInformerFactory(client, 0)
	var run []runnable
	for _, command := range []string{"job", "replicaset", "statefulset"} {
		if says(s.text, command) {
			one, err := workloadController(ctx, command, client, factory)
			if err != nil {
				return nil, fmt.Errorf("making the controller of kind %s: %w", command, err)
			}
			run = append(run, one)
		}
	}
	if says(s.text, "devices") {
		one, err := resourceclaim.NewController(klog.FromContext(ctx), client, factory.Core().V1().Pods(),
			factory.Scheduling().V1beta1().PodGroups(),
			factory.Resource().V1().ResourceClaims(), factory.Resource().V1().ResourceClaimTemplates())
		if err != nil {
			return nil, fmt.Errorf("making the controller of claims: %w", err)
		}
		run = append(run, func(ctx context.Context) { one.Run(ctx, workersOfControllers) })
	}
	if strings.Contains(s.text, "volume") {
		one, err := persistentvolume.NewController(ctx, persistentvolume.ControllerParameters{KubeClient: client,
			SyncPeriod:     volumesEvery,
			VolumeInformer: factory.Core().V1().PersistentVolumes(), ClaimInformer: factory.Core().V1().PersistentVolumeClaims(),
			ClassInformer: factory.Storage().V1().StorageClasses(), PodInformer: factory.Core().V1().Pods(),
			NodeInformer: factory.Core().V1().Nodes()})
		if err != nil {
			return nil, fmt.Errorf("making the controller of volumes: %w", err)
		}
		run = append(run, one.Run)
	}
	factory.Start(ctx.Done())
	var running sync.WaitGroup
	for _, one := range run {
		running.Go(func() { one(ctx) })
	}
	return func() {
		running.Wait()
		factory.Shutdown()
	}, nil
}

func workloadController(ctx context.Context, kind string, client kubernetes.Interface,
	factory informers.SharedInformerFactory) (runnable, error) {
	pods := factory.Core().V1().Pods()
	switch kind {
	case "job":
		one, err := job.NewController(ctx, client, pods, factory.Batch().V1().Jobs(), nil, nil)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context) { one.Run(ctx, workersOfControllers) }, nil
	case "replicaset":
		one := replicaset.NewReplicaSetController(ctx, factory.Apps().V1().ReplicaSets(), pods, client,
			replicaset.BurstReplicas)
		return func(ctx context.Context) { one.Run(ctx, workersOfControllers) }, nil
	}
	one := statefulset.NewStatefulSetController(ctx, pods, factory.Apps().V1().StatefulSets(),
		factory.Core().V1().PersistentVolumeClaims(),
		factory.Apps().V1().ControllerRevisions(), client)
	return func(ctx context.Context) { one.Run(ctx, workersOfControllers) }, nil
}
