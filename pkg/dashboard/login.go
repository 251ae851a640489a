package dashboard

import (
	"context"
	"errors"
	"net/http"

	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/tokens"
)

// mostTokenBytes bounds the form with a token; cookies of more than 4 KiB are dropped by browsers.
const mostTokenBytes = 4 << 10

// readerKey is the key of a request's reader in its context.
type readerKey struct{}

func readerOf(r *http.Request) *reader { return r.Context().Value(readerKey{}).(*reader) }

// serveReader lets those through whose token the API server knows.
func (s *Server) serveReader(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/healthz":
		_, _ = w.Write([]byte("ok"))
		return
	case "/style.css", "/live.js", "/login":
		s.mux.ServeHTTP(w, r)
		return
	}
	reader, err := s.access.reader(r.Context(), tokenOf(r), namespacesOf(s.cluster()))
	switch {
	case errors.Is(err, tokens.ErrNone), errors.Is(err, tokens.ErrUnknown):
		s.askForToken(w, err)
	case err != nil:
		klog.FromContext(r.Context()).Error(err, "It cannot be found out what a reader may see", "from", r.RemoteAddr)
		s.problem(w, http.StatusServiceUnavailable, "The API server does not say what you may see.", "Try again in a moment.")
	default:
		s.mux.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), readerKey{}, reader)))
	}
}

// stillReads asks again for the rights of a reader whose page follows the cluster.
func (s *Server) stillReads(r *http.Request) (*reader, error) {
	if s.access == nil {
		return readerOf(r), nil
	}
	return s.access.reader(r.Context(), tokenOf(r), namespacesOf(s.cluster()))
}

// askForToken shows the form for a token.
func (s *Server) askForToken(w http.ResponseWriter, why error) {
	view := problemView{Cluster: s.source.Name}
	if errors.Is(why, tokens.ErrUnknown) {
		view.Happened = "The API server does not know this token. It may have expired."
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("WWW-Authenticate", "Bearer")
	w.WriteHeader(http.StatusUnauthorized)
	s.write(w, "login", view)
}

// login keeps a token in a cookie of the browser. The server itself keeps none.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 2*mostTokenBytes)
	token := r.PostFormValue("token")
	if len(token) > mostTokenBytes {
		s.problem(w, http.StatusBadRequest, "The token is too long for a cookie.",
			"Put a proxy in front that sends it in the header Authorization.")
		return
	}
	if _, err := s.access.reader(r.Context(), token, namespacesOf(s.cluster())); err != nil {
		s.askForToken(w, err)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: tokenCookie, Value: token, Path: "/", Secure: true, HttpOnly: true,
		SameSite: http.SameSiteStrictMode})
	http.Redirect(w, r, "./", http.StatusSeeOther)
}
