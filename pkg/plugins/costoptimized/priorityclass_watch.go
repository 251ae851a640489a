package costoptimized

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// askAgain is how long PriorityClasses that may not be read are taken for none before the API server is asked again.
const askAgain = 10 * time.Minute

// priorityClassInformer is the factory's informer of PriorityClasses. A scheduler without the right to read them starts
// all the same: it reports that once, and the classes have no stance to spot until it gets the right. The factory's own
// informer would never be filled, and with it no profile would ever start.
func priorityClassInformer(ctx context.Context, factory informers.SharedInformerFactory) cache.SharedIndexInformer {
	return factory.InformerFor(&schedulingv1.PriorityClass{}, func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		source := &classSource{client: client, logger: klog.FromContext(ctx)}
		lister := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
			ListWithContextFunc: source.list, WatchFuncWithContext: source.watch,
		}, client)
		return cache.NewSharedIndexInformer(lister, &schedulingv1.PriorityClass{}, resync, cache.Indexers{})
	})
}

// classSource lists and watches PriorityClasses as long as it is allowed to. It is safe for concurrent use.
type classSource struct {
	client kubernetes.Interface
	logger klog.Logger

	mu     sync.Mutex
	denied bool
	told   bool
}

func (s *classSource) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list, err := s.client.SchedulingV1().PriorityClasses().List(ctx, options)
	denied := apierrors.IsForbidden(err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.denied = denied
	if !denied {
		if err != nil {
			return nil, fmt.Errorf("listing priority classes: %w", err)
		}
		s.told = false
		return list, nil
	}
	if !s.told {
		s.told = true
		s.logger.Error(err, "PriorityClasses have no stance to spot: grant get, list and watch on priorityclasses.scheduling.k8s.io")
	}
	return &schedulingv1.PriorityClassList{}, nil
}

func (s *classSource) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	s.mu.Lock()
	denied := s.denied
	s.mu.Unlock()
	// A watch that begins with the classes that there are takes the place of a list, and so asks again. Where it is refused, the informer
	// lists.
	lists := options.SendInitialEvents != nil && *options.SendInitialEvents
	if !denied || lists {
		w, err := s.client.SchedulingV1().PriorityClasses().Watch(ctx, options)
		if lists && err == nil {
			s.mu.Lock()
			s.denied, s.told = false, false
			s.mu.Unlock()
		}
		return w, err
	}
	events := make(chan watch.Event, 1)
	w := watch.NewProxyWatcher(events)
	go func() {
		again := time.NewTimer(askAgain)
		defer again.Stop()
		select {
		case <-again.C:
			// What was listed has expired: the informer lists again.
			events <- watch.Event{Type: watch.Error, Object: &metav1.Status{
				Status: metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonExpired,
			}}
		case <-w.StopChan():
		case <-ctx.Done():
		}
	}()
	return w, nil
}
