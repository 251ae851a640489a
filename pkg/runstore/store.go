package runstore

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/informers"
)

// Namespace, Name and Key say where the book is, beside the lease.
const (
	Namespace = "kube-system"
	Name      = "berth-run-times"
	Key       = "book"
)

const (
	// saveEvery is how often the book is written, at the most.
	saveEvery = 5 * time.Minute
	// requestTimeout bounds a request.
	requestTimeout = 10 * time.Second
)

// Store reads and writes the ConfigMap.
type Store struct {
	Client clientset.Interface
	// Load takes what was written, and Dump returns what to write and how much was learned until then.
	Load func([]byte) error
	Dump func() (book []byte, learned uint64, err error)
	// Leads reports whether this scheduler leads.
	Leads func() bool

	// saved is how much had been learned when it was written last.
	saved uint64
}

// Start reads the book and keeps it written, where this process takes part in a leader election. Without one, another
// scheduler could write at the same time.
func (s *Store) Start(ctx context.Context) {
	if _, running := informers.Leads(); !running {
		return
	}
	s.Leads = func() bool { leads, _ := informers.Leads(); return leads }
	go s.run(ctx)
}

func (s *Store) run(ctx context.Context) {
	s.read(ctx)
	tick := time.NewTicker(saveEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.save(ctx)
		}
	}
}

// read takes what was written by the scheduler before.
func (s *Store) read(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	logger := klog.FromContext(ctx).WithValues("configMap", Namespace+"/"+Name)
	kept, err := s.Client.CoreV1().ConfigMaps(Namespace).Get(ctx, Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return
	case err != nil:
		logger.Info("Run times are learned from the start: what is known could not be read", "err", err)
		return
	}
	book, written := kept.BinaryData[Key]
	if !written {
		return
	}
	if err := s.Load(book); err != nil {
		logger.Info("Run times are learned from the start: what was written is not a book of run times", "key", Key,
			"err", err)
		return
	}
	_, s.saved, _ = s.Dump()
	logger.V(2).Info("Read what is known of run times", "bytes", len(book))
}

// save writes the book if something was learned.
func (s *Store) save(ctx context.Context) {
	if !s.Leads() {
		return
	}
	logger := klog.FromContext(ctx).WithValues("configMap", Namespace+"/"+Name)
	book, learned, err := s.Dump()
	if err != nil {
		logger.Error(err, "What was learned of run times could not be encoded")
		return
	}
	if learned == s.saved {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if err := s.write(ctx, book); err != nil {
		logger.Info("What was learned of run times is lost at a restart", "err", err)
		return
	}
	s.saved = learned
}

// write changes the ConfigMap, and makes it where there is none and that is allowed.
func (s *Store) write(ctx context.Context, book []byte) error {
	maps := s.Client.CoreV1().ConfigMaps(Namespace)
	patch, err := json.Marshal(map[string]any{"binaryData": map[string][]byte{Key: book}})
	if err != nil {
		return fmt.Errorf("encoding a book of %d bytes: %w", len(book), err)
	}
	_, err = maps.Patch(ctx, Name, apitypes.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		_, err = maps.Create(ctx, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: Name},
			BinaryData: map[string][]byte{Key: book}}, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("writing %d bytes: %w", len(book), err)
	}
	return nil
}
