package metricsauth

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func TestOnlyThosePassWhomTheAPIServerAllows(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		header string
		// down is the resource that the API server does not answer for.
		down string
		want int
		text string
		// asked is how many questions two requests cost.
		asked int
	}{
		"a reader, who is asked for once": {header: "Bearer reader", want: 200, text: "metrics", asked: 2},
		"a word in small letters":         {header: "bearer reader", want: 200, text: "metrics", asked: 2},
		"no token":                        {want: 401, text: "Authorization: Bearer TOKEN"},
		"an empty token":                  {header: "Bearer ", want: 401, text: "Authorization: Bearer TOKEN"},
		"a password": {header: "Basic cmVhZGVyOg==", want: 401,
			text: "Authorization: Bearer TOKEN"},
		"a token that is unknown": {header: "Bearer other", want: 401, text: "does not know the token",
			asked: 2},
		"an account without the right, asked again": {header: "Bearer stranger", want: 403,
			text: "stranger may not get /metrics", asked: 4},
		"no answer to whose token it is": {header: "Bearer reader", down: "tokenreviews", want: 503, text: "does not say",
			asked: 2},
		"no answer to its rights": {header: "Bearer reader", down: "subjectaccessreviews", want: 503, text: "does not say",
			asked: 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := fake.NewClientset()
			asked := 0
			client.PrependReactor("create", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
				asked++
				object := action.(clienttesting.CreateAction).GetObject()
				if action.GetResource().Resource == tc.down {
					return true, nil, errors.New("no answer")
				}
				switch review := object.(type) {
				case *authenticationv1.TokenReview:
					review.Status.Authenticated = review.Spec.Token != "other"
					review.Status.User = authenticationv1.UserInfo{Username: review.Spec.Token, Groups: []string{"g"}}
				case *authorizationv1.SubjectAccessReview:
					attributes := review.Spec.NonResourceAttributes
					review.Status.Allowed = review.Spec.User == "reader" && review.Spec.Groups[0] == "g" &&
						attributes.Path == "/metrics" && attributes.Verb == "get"
				}
				return true, object, nil
			})
			g := &guard{client, utilcache.NewLRUExpireCache(mostTokens),
				http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("metrics")) })}
			for range 2 {
				request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
				request.Header.Set("Authorization", tc.header)
				answer := httptest.NewRecorder()
				g.ServeHTTP(answer, request)
				if answer.Code != tc.want || !strings.Contains(answer.Body.String(), tc.text) {
					t.Errorf("answer %d %q, want %d and %q", answer.Code, answer.Body, tc.want, tc.text)
				}
			}
			if asked != tc.asked {
				t.Errorf("asked %d times, want %d", asked, tc.asked)
			}
		})
	}
}
