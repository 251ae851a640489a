package ipreservation

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	networkv1alpha1 "berth.dev/berth/pkg/apis/network/v1alpha1"
)

// written is a reservation that the ledger knows of from an answer of the API server. The informer may never tell of
// it: not if it is deleted before a watch or a list shows it.
type written struct {
	address netip.Addr
	object  string
}

// noteWritten tells the ledger of a reservation as the API server has returned it.
func (b *book) noteWritten(r *networkv1alpha1.IPReservation) {
	b.observe(r)
	h, err := holdingOf(r)
	if err != nil {
		return
	}
	b.mu.Lock()
	b.unseen[r.Name] = written{h.Address, h.Object}
	b.mu.Unlock()
	signal(b.wrote)
}

// seen notes that the informer tells of the reservation, and so of its end.
func (b *book) seen(r *networkv1alpha1.IPReservation) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if w, ok := b.unseen[r.Name]; ok && w.object == string(r.UID) {
		delete(b.unseen, r.Name)
	}
}

// lookAfterWritten asks the API server for what was written and is not seen after a while, until ctx ends.
func (b *book) lookAfterWritten(ctx context.Context) {
	if !cache.WaitForCacheSync(ctx.Done(), b.synced...) {
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.wrote:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(releaseRetry):
		}
		if b.askForWritten(ctx) > 0 {
			signal(b.wrote)
		}
	}
}

// askForWritten returns how many reservations are still not seen.
func (b *book) askForWritten(ctx context.Context) int {
	b.mu.Lock()
	unseen := maps.Clone(b.unseen)
	b.mu.Unlock()
	for name, w := range unseen {
		if obj, exists, err := b.reservations.GetStore().GetByKey(name); err == nil && exists {
			if r := obj.(*networkv1alpha1.IPReservation); string(r.UID) == w.object {
				b.seen(r)
				continue
			}
		}
		if err := b.askFor(ctx, name, w); err != nil {
			klog.FromContext(ctx).Error(err, "A reservation that was written is not seen, asking again")
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.unseen)
}

func (b *book) askFor(ctx context.Context, name string, w written) error {
	r := &networkv1alpha1.IPReservation{}
	err := b.client.Get().Resource(reservationKind.Resource.Resource).Name(name).Do(ctx).Into(r)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading IPReservation %s: %w", name, err)
	}
	if err == nil && string(r.UID) == w.object {
		return nil
	}
	b.mu.Lock()
	if b.unseen[name] == w {
		delete(b.unseen, name)
	}
	b.mu.Unlock()
	if h, known := b.ledger.Held(w.address); known && h.Object == w.object {
		b.forget(w.address, w.object, h.Identity)
	}
	if err == nil {
		b.noteWritten(r)
	}
	return nil
}
