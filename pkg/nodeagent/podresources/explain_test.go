package podresources

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestASocketThatMayNotBeOpenedSaysWhatHelps(t *testing.T) {
	t.Parallel()
	cause := status.Error(codes.Unavailable, `connection error: desc = "transport: dial unix /kubelet.sock: connect: permission denied"`)
	err := explain("listing pods' devices", cause)
	if !errors.Is(err, errForbidden) || !errors.Is(err, cause) || !strings.Contains(err.Error(), "root by default") {
		t.Errorf("error %v", err)
	}
	if err := explain("listing pods' devices", errors.New("away")); errors.Is(err, errForbidden) {
		t.Errorf("error %v", err)
	}
}
