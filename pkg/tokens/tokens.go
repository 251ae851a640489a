// Package tokens asks the API server who sends a request and what he may do, by TokenReview and SubjectAccessReview.
package tokens

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Errors of UserOf, which say that the sender is not known.
var (
	ErrNone    = errors.New("want the header Authorization: Bearer TOKEN, with a token of the API server")
	ErrUnknown = errors.New("the API server does not know the token")
)

// Bearer is the token in the header of a request, empty for none.
func Bearer(r *http.Request) string {
	kind, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(kind, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// UserOf returns whose token it is. An empty one is ErrNone, one that the API server does not know ErrUnknown.
func UserOf(ctx context.Context, client kubernetes.Interface, token string) (*authenticationv1.UserInfo, error) {
	if token == "" {
		return nil, ErrNone
	}
	review, err := client.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("asking whose token it is: %w", err)
	}
	if !review.Status.Authenticated {
		return nil, ErrUnknown
	}
	return &review.Status.User, nil
}

// May reports whether the user has the right that is asked for.
func May(ctx context.Context, client kubernetes.Interface, user *authenticationv1.UserInfo,
	ask authorizationv1.SubjectAccessReviewSpec) (bool, error) {
	ask.User, ask.UID, ask.Groups, ask.Extra = user.Username, user.UID, user.Groups,
		map[string]authorizationv1.ExtraValue{}
	for name, values := range user.Extra {
		ask.Extra[name] = authorizationv1.ExtraValue(values)
	}
	review := &authorizationv1.SubjectAccessReview{Spec: ask}
	answer, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("asking for the rights of %s: %w", user.Username, err)
	}
	return answer.Status.Allowed, nil
}
