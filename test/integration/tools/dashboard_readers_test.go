package tools_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"

	"berth.dev/berth/pkg/dashboard"
	"berth.dev/berth/pkg/gpuview"
	"berth.dev/berth/pkg/overview"
	"berth.dev/berth/pkg/price"
	"berth.dev/berth/pkg/priceview"
	"berth.dev/berth/test/harness/box"
)

// inCluster serves the dashboard to readers with tokens, and returns its address and a client that trusts it.
func inCluster(t *testing.T, shared *box.Box) (string, *http.Client) {
	t.Helper()
	watcher, err := overview.NewWatcher(shared.Config, overview.NewBook(gpuview.DefaultKeys(), overview.Pricing{
		Of: func(n *corev1.Node) (price.MicroDollars, bool) {
			p, ok, _ := priceview.StatedPrice(n)
			return p, ok
		},
	}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	if err := watcher.Start(ctx); err != nil {
		t.Fatal(err)
	}
	server := dashboard.NewInCluster(dashboard.Source{
		Name:    "test",
		Cluster: func() *overview.Cluster { return watcher.Cluster(time.Now()) },
		PodsOn:  func(node string) []overview.PodOn { return watcher.PodsOn(node, time.Now()) },
		History: watcher.History, Plan: watcher.Plan,
	}, dashboard.NewAccess(shared.Client))
	own, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(own, key)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() {
		served <- server.ServeInCluster(ctx, listener, &tls.Config{MinVersion: tls.VersionTLS12,
			Certificates: []tls.Certificate{pair}})
	}()
	roots, err := cert.NewPoolFromBytes(own)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return "https://" + listener.Addr().String(), &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// readersSeeWhatTheyMayList asks for the dashboard with the tokens of two accounts, and without one.
func readersSeeWhatTheyMayList(t *testing.T, shared *box.Box) {
	ctx := t.Context()
	core, rbac := shared.Client.CoreV1(), shared.Client.RbacV1()
	account := func(namespace, name string) string {
		made := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := core.ServiceAccounts(namespace).Create(ctx, made, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		request, err := core.ServiceAccounts(namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{},
			metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return request.Status.Token
	}
	rules := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods", "nodes"}, Verbs: []string{"list"}}}
	for _, namespace := range []string{"mine", "theirs"} {
		made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
		if _, err := core.Namespaces().Create(ctx, made, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "of-" + namespace}, Spec: corev1.PodSpec{
			SchedulerName: "of-no-profile", Containers: []corev1.Container{{Name: "c", Image: "i"}},
		}}
		box.Await(t, "the namespace to take pods", func(ctx context.Context) (bool, error) {
			_, err := core.Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
			return err == nil, nil
		})
	}
	tenant, admin := account("mine", "tenant"), account("mine", "admin")
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Rules: rules}
	if _, err := rbac.Roles("mine").Create(ctx, role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "mine", Name: "tenant"}},
	}
	if _, err := rbac.RoleBindings("mine").Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	everything := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "dashboard-admin"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName,
			Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "mine", Name: "admin"}},
	}
	if _, err := rbac.ClusterRoleBindings().Create(ctx, everything, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	address, client := inCluster(t, shared)
	get := func(path, token string) (int, string) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(body)
	}
	for name, tc := range map[string]struct {
		path, token string
		status      int
		has, hasNot []string
	}{
		"without a token": {"/", "", http.StatusUnauthorized, []string{`name="token"`}, []string{"of-mine"}},
		"with a false one": {"/", "x.y.z", http.StatusUnauthorized, []string{"does not know this token"},
			[]string{"of-mine"}},
		"events without a token": {"/events", "", http.StatusUnauthorized, nil, []string{"of-mine"}},
		"health needs none":      {"/healthz", "", http.StatusOK, []string{"ok"}, nil},
		"a tenant": {"/", tenant, http.StatusOK, []string{"mine/of-mine", "you may not list them"},
			[]string{"of-theirs", "node-0"}},
		"a tenant's namespace": {"/namespace?name=mine", tenant, http.StatusOK, []string{"of-mine"}, nil},
		"another's namespace":  {"/namespace?name=theirs", tenant, http.StatusNotFound, nil, []string{"of-theirs"}},
		"a node, for a tenant": {"/node?name=node-0", tenant, http.StatusNotFound, nil, nil},
		"an explanation": {"/explain?kind=pod&namespace=mine&name=of-mine", tenant, http.StatusNotFound,
			[]string{"berth explain pod of-mine --namespace mine"}, nil},
		"who may list all sees all": {"/", admin, http.StatusOK, []string{"mine/of-mine", "theirs/of-theirs", "node-0"},
			[]string{"you may not list them"}},
	} {
		status, body := get(tc.path, tc.token)
		if status != tc.status {
			t.Errorf("%s: status %d, want %d:\n%s", name, status, tc.status, body)
		}
		for _, want := range tc.has {
			if !strings.Contains(body, want) {
				t.Errorf("%s: the page has no %q:\n%s", name, want, body)
			}
		}
		for _, secret := range tc.hasNot {
			if strings.Contains(body, secret) {
				t.Errorf("%s: the page has %q", name, secret)
			}
		}
	}
	// A token that is typed in is kept by the browser.
	form := url.Values{"token": {tenant}}.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address+"/login", strings.NewReader(form))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	cookies := response.Cookies()
	if response.StatusCode != http.StatusSeeOther || len(cookies) != 1 || !cookies[0].HttpOnly || !cookies[0].Secure ||
		cookies[0].Value != tenant {
		t.Errorf("signing in: status %d, cookies %v", response.StatusCode, cookies)
	}
}
