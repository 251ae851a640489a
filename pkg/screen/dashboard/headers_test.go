package dashboard

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"berth.dev/berth/test/harness/require"
)

// The server closes the connection, which on a busy machine the client may notice before it has read the answer.
func TestVeryLargeHeadersAreRefused(t *testing.T) {
	t.Parallel()
	_, address := started(t)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	require.NoError(t, err)
	request.Header.Set("X-Large", strings.Repeat("x", 64<<10))
	response, err := http.DefaultClient.Do(request)
	switch {
	case err == nil:
		defer response.Body.Close() //nolint:errcheck // it is not read
		if response.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("status %d, want %d", response.StatusCode, http.StatusRequestHeaderFieldsTooLarge)
		}
	case !closed(err):
		t.Errorf("error %v, want a refusal or a connection that is closed", err)
	}
}

// closed says whether an error is that the server has closed the connection.
func closed(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF)
}
