package box

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestAServerThatHasTooMuchToDoIsAskedAgain(t *testing.T) {
	t.Parallel()
	pods := schema.GroupResource{Resource: "pods"}
	for _, tc := range []struct {
		name string
		err  error
		ends bool
	}{
		{"a request that the server could not serve in time", apierrors.NewServerTimeout(pods, "list", 1), false},
		{"a request that timed out", apierrors.NewTimeoutError("etcd is slow", 1), false},
		{"an error of etcd", apierrors.NewInternalError(errors.New("etcdserver: request timed out")), false},
		{"too many requests", apierrors.NewTooManyRequests("later", 1), false},
		{"a pod that does not exist is an error", apierrors.NewNotFound(pods, "p"), true},
		{"so is any other", errors.New("it is on another node"), true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			err := await(t.Context(), time.Minute, func(context.Context) (bool, error) {
				if asked++; asked == 1 {
					return false, tc.err
				}
				return true, nil
			})
			if tc.ends && (!errors.Is(err, tc.err) || asked != 1) {
				t.Errorf("error %v after %d questions, want the error of the first", err, asked)
			}
			if !tc.ends && (err != nil || asked != 2) {
				t.Errorf("error %v after %d questions, want none after two", err, asked)
			}
		})
	}
}

func TestTheLastTroubleIsSaid(t *testing.T) {
	t.Parallel()
	busy := apierrors.NewTooManyRequests("later", 1)
	err := await(t.Context(), time.Millisecond, func(context.Context) (bool, error) { return false, busy })
	if !errors.Is(err, busy) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want that there was not enough time, and why", err)
	}
}
