package runstore

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"berth.dev/berth/pkg/runtimes"
)

// rig is a store of a book, and an API server that counts writes.
type rig struct {
	*Store
	book   *runtimes.Book
	api    *fake.Clientset
	leads  bool
	writes int
}

func newRig(kept ...runtime.Object) *rig {
	r := &rig{book: runtimes.NewBook(), api: fake.NewClientset(kept...), leads: true}
	r.Store = &Store{Client: r.api, Load: r.book.UnmarshalBinary, Leads: func() bool { return r.leads },
		Dump: func() ([]byte, uint64, error) {
			data, err := r.book.MarshalBinary()
			return data, r.book.Learned(), err
		}}
	r.api.PrependReactor("patch", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		r.writes++
		return false, nil, nil
	})
	return r
}

func (r *rig) learn(times int) {
	for range times {
		r.book.Ended(&runtimes.Class{Namespace: "a", GPUs: 8}, &runtimes.Claim{}, time.Hour)
	}
}

func (r *rig) kept(t *testing.T) *v1.ConfigMap {
	t.Helper()
	m, err := r.api.CoreV1().ConfigMaps(Namespace).Get(t.Context(), Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func holding(book []byte) *v1.ConfigMap {
	m := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: Name},
		Data: map[string]string{"note": "mine"}}
	if book != nil {
		m.BinaryData = map[string][]byte{Key: book}
	}
	return m
}

func TestWhatWasLearnedSurvives(t *testing.T) {
	t.Parallel()
	for name, before := range map[string][]runtime.Object{
		"in the ConfigMap that is installed": {holding(nil)}, "in one that the scheduler makes": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := newRig(before...)
			first.learn(20)
			first.save(t.Context())
			next := newRig(first.kept(t))
			next.read(t.Context())
			if !next.book.Knows() || next.book.Learned() != 20 {
				t.Errorf("the next scheduler has learned %d times", next.book.Learned())
			}
			next.save(t.Context())
			if next.writes > 0 {
				t.Error("it writes what it has just read")
			}
			if len(before) > 0 && first.kept(t).Data["note"] != "mine" {
				t.Error("the write has changed what others have put there")
			}
		})
	}
}

func TestWhatCannotBeReadIsAnEmptyBook(t *testing.T) {
	t.Parallel()
	whole := newRig()
	whole.learn(20)
	book, err := whole.book.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	for name, kept := range map[string]*v1.ConfigMap{
		"half of it":        holding(book[:len(book)/2]),
		"something else":    holding([]byte("apiVersion: v1")),
		"more than allowed": holding(append(book, make([]byte, 300<<10)...)),
		"nothing":           holding([]byte{}),
		"another version":   holding(append([]byte{99}, book[1:]...)),
		"no book":           holding(nil),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(kept)
			r.read(t.Context())
			if r.book.Learned() != 0 {
				t.Errorf("%d runs were read", r.book.Learned())
			}
			r.learn(1)
			r.save(t.Context())
			fresh := newRig(r.kept(t))
			if fresh.read(t.Context()); fresh.book.Learned() != 1 {
				t.Error("it is not written over")
			}
		})
	}
}

func TestItIsWrittenEveryFiveMinutesIfSomethingWasLearned(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(holding(nil))
		ctx, stop := context.WithCancel(t.Context())
		go r.run(ctx)
		synctest.Wait()
		for minute, want := range []int{0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2} {
			if r.writes != want {
				t.Errorf("after %d minutes there were %d writes, want %d", minute, r.writes, want)
			}
			r.learn(100)
			time.Sleep(time.Minute) //nolint:forbidigo // virtual time
			synctest.Wait()
		}
		time.Sleep(time.Hour) //nolint:forbidigo // virtual time
		synctest.Wait()
		if r.writes != 3 {
			t.Errorf("after an hour in which nothing was learned there were %d writes, want 3", r.writes)
		}
		r.leads = false
		r.learn(1)
		time.Sleep(time.Hour) //nolint:forbidigo // virtual time
		synctest.Wait()
		if r.writes != 3 {
			t.Error("a scheduler that does not lead writes")
		}
		stop()
		synctest.Wait()
	})
}

func TestAWriteThatFailsIsTriedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(holding(nil))
	fails := true
	r.api.PrependReactor("patch", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		return fails, nil, errors.New("refused")
	})
	r.learn(10)
	r.save(t.Context())
	if len(r.kept(t).BinaryData) > 0 {
		t.Fatal("the write that was refused is there")
	}
	fails = false
	r.save(t.Context())
	if len(r.kept(t).BinaryData[Key]) == 0 {
		t.Error("it was not tried again")
	}
}

// An object may have about one megabyte.
func TestAFullBookFitsIntoAConfigMap(t *testing.T) {
	t.Parallel()
	r := newRig()
	for i := range 40_000 {
		r.book.Ended(&runtimes.Class{Namespace: string(rune('a' + i%26)), Controller: string(rune(i)), GPUs: i % 16},
			&runtimes.Claim{}, time.Duration(i)*time.Second)
	}
	book, _, err := r.Dump()
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(holding(book))
	if err != nil {
		t.Fatal(err)
	}
	if len(book) < 200<<10 || len(data) > 512<<10 {
		t.Errorf("a book of %d bytes is an object of %d", len(book), len(data))
	}
}
