package signals

import (
	"bytes"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/client_golang/api"
	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"berth.dev/berth/test/harness/require"
)

// cannedAnswer answers every request with the same bytes, without a network.
type cannedAnswer []byte

func (a cannedAnswer) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(a))}, nil
}

// FuzzAnswers reads arbitrary bytes as the answer of a server: whatever comes, a snapshot holds values within range
// only, and nothing panics.
func FuzzAnswers(f *testing.F) {
	for _, seed := range []string{
		emptyVector, "", "{", "<html>", `{"status":"error","errorType":"execution","error":"x"}`,
		`{"status":"success","data":{"resultType":"vector","result":[{"metric":{"node":"a","gpu":"0","berth_reading":"engine"},"value":[1000,"0.5"]},` +
			`{"metric":{"node":"a","berth_reading":"time"},"value":[1000,"990"]},` +
			`{"metric":{"node":"a","gpu":"0","berth_reading":"used"},"value":[1000,"9223372036854775794"]}]}}`,
		`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[940,"0"],[1000,"0"]]},` +
			`{"metric":{"node":"a","gpu":"0","berth_reading":"xid"},"values":[[940,"0"],[1000,"79"]]},` +
			`{"metric":{"node":"a","gpu":"0","berth_reading":"row_remap"},"values":[[1000,"NaN"]]}]}}`,
		`{"status":"success","data":{"resultType":"vector","result":[{"metric":{"node":"a"},"value":[1e308,"-Inf"]}]}}`,
		`{"status":"success","data":{"resultType":"vector","result":[null]}}`,
		`{"status":"success","data":{"resultType":"matrix","result":[null]}}`,
	} {
		f.Add([]byte(seed))
	}
	fatal := []int32{79}
	from := newOrigin(hostLabels, []Node{{Name: "a"}})
	asked := time.Unix(5000, 0)
	f.Fuzz(func(t *testing.T, body []byte) {
		apiClient, err := api.NewClient(api.Config{Address: "http://prometheus", RoundTripper: cannedAnswer(body)})
		require.NoError(t, err)
		c := &client{api: prometheusv1.NewAPI(apiClient), timeout: time.Second, server: "prometheus"}
		if matrix, err := c.query(t.Context(), "x", model.ValMatrix, time.Minute); err == nil {
			faults, _ := decodeFaults(matrix.(model.Matrix), asked, fatal, from)
			for _, fault := range faults["a"] {
				if fault.XID != 0 && fault.XID != 79 || fault.Time.After(asked) {
					t.Errorf("fault %v", fault)
				}
			}
		}
		answer, err := c.query(t.Context(), "x", model.ValVector, time.Minute)
		if err != nil {
			return
		}
		vector := answer.(model.Vector)
		use, _ := decodeUse(vector, asked, from)
		for _, gpu := range use["a"].GPUs {
			if gpu.Milli < 0 || gpu.Milli > 1000 || min(gpu.UsedMiB, gpu.FreeMiB) < 0 ||
				max(gpu.UsedMiB, gpu.FreeMiB) > maxMemoryMiB {
				t.Errorf("GPU %v", gpu)
			}
		}
		measured, _ := decodeFigures(vector, func(a, b float64) float64 { return max(a, b) }, from)
		for node, figure := range measured {
			if node != "a" || !(figure > 0 && figure <= largestFigure) {
				t.Errorf("node %s: figure %g", node, figure)
			}
		}
		prices := PriceSnapshot{maxAge: time.Hour}
		prices.update(vector, asked)
		for of, q := range prices.quotes {
			if q.perHour <= 0 || of == (priced{}) {
				t.Errorf("%v: price %s", of, q.perHour)
			}
		}
	})
}
